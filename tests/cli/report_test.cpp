// The report page of one run: what `run --out` left becomes the page's data.
#define BOOST_TEST_MODULE report
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"

namespace {

const char* small =
    "name: small\nrack: {base: hgx-h200, gpus: 8}\nmodel: deepseek-v4-flash\n"
    "deployment:\n  aggregated: {engines: 1, tp: 8, max_batched_tokens: 8192, max_requests_per_rank: 32}\n"
    "workload: {kind: closed_loop, concurrency: 8, requests: 64, warmup_count: 0, duration: 1 h, input: 1024, output: 64, range_ratio: 0.8}\nnetwork: fluid\n";

// The page holds its data as one JSON value of a script element.
nlohmann::json data_of(const std::string& page) {
  for (std::size_t at = page.find("application/json"); at != std::string::npos; at = page.find("application/json", at + 1)) {
    const std::size_t begin = page.find('>', at) + 1, end = page.find("</script>", begin);
    const nlohmann::json data = nlohmann::json::parse(page.substr(begin, end - begin), nullptr, false);
    if (data.is_object()) return data;
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_run_with_its_requests_gives_histograms_and_the_slowest_requests_in_parts_that_add_up) {
  const support::TemporaryFolder folder;
  const std::string scenario = folder.file("small.yaml", small);
  BOOST_REQUIRE(support::rackcast("run " + scenario + " --out " + folder.path + "/run").code == 0);
  BOOST_REQUIRE(support::rackcast("report " + folder.path + "/run --out " + folder.path + "/page.html").code == 0);
  const nlohmann::json data = data_of(support::content_of(folder.path + "/page.html"));
  BOOST_REQUIRE(data.contains("run"));
  const nlohmann::json& run = data["run"];
  int requests = 0;
  for (const nlohmann::json& count : run["histograms"]["ttft"]["counts"]) requests += count.get<int>();
  BOOST_TEST(requests == 64);
  BOOST_REQUIRE(!run["slowest"].empty());
  double before = 1e9;
  for (const nlohmann::json& request : run["slowest"]) {
    double sum = 0;
    for (const nlohmann::json& part : request["parts"]) {
      BOOST_TEST(part["time_s"].get<double>() >= 0);
      sum += part["time_s"].get<double>();
    }
    BOOST_TEST(sum <= before + 1e-9);  // slowest first
    before = sum;
  }
  BOOST_TEST(run["gpus"].size() == 8u);
}
