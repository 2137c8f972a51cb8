// rackcast run: what of a result lies outside the range of its cost file's points is said in table, JSON and metric.
#define BOOST_TEST_MODULE run_verb
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/program.hpp"

using nlohmann::json;
using support::shell;

namespace {

const std::string scenario = " scenarios/handover.yaml --set 'workload.duration=60 s' --set workload.concurrency=64 --set deployment.prefill.engines=2";

// gb300.yaml, without the ranges it ships with.
std::string costs_without_ranges() {
  std::string text, line;
  std::istringstream file(support::content_of(RACKCAST_SOURCE_DIR "/scenarios/costs/gb300.yaml"));
  std::size_t range_at = std::string::npos;
  while (std::getline(file, line)) {
    const std::size_t at = line.find_first_not_of(' ');
    if (range_at != std::string::npos && at > range_at) continue;
    range_at = at != std::string::npos && line.compare(at, std::string::npos, "range:") == 0 ? at : std::string::npos;
    if (range_at == std::string::npos) text += line + "\n";
  }
  return text;
}

std::string with_costs(const std::string& file) { return scenario + " --set deployment.prefill.cost=" + file + " --set deployment.decode.cost=" + file; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_run_names_the_families_that_leave_their_range_and_their_share) {
  const support::Outcome outcome = shell("\"$RACKCAST\" run" + scenario + " --json");
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  const json result = json::parse(outcome.out);
  const double share = result["metrics"]["outside_range"];
  BOOST_TEST(share > 0.01);
  BOOST_TEST(share < 1);
  for (const json& pool : result["breakdown"]["pools"]) {
    double sum = 0;
    for (const json& family : pool["outside_range"]) {
      sum += family["share"].get<double>();
      BOOST_TEST(family["axes"].size() >= 1u);
      for (const json& axis : family["axes"]) {
        const bool below = axis["reached"][0] < axis["points"][0], above = axis["reached"][1] > axis["points"][1];
        BOOST_TEST((below || above), family.dump());
      }
    }
    BOOST_TEST(sum <= 1 + 1e-9);
    const std::string head = pool["name"].get<std::string>() + ": ", tail = "of its time is in launches outside the range of the cost file's points";
    bool told = false;
    for (const json& note : result["manifest"]["notes"]) told |= note.get<std::string>().starts_with(head) && note.get<std::string>().find(tail) != std::string::npos;
    BOOST_TEST(told == (sum > 0));
  }
  const support::Outcome table = shell("\"$RACKCAST\" run" + scenario);
  BOOST_TEST(table.out.find("note: decode: ") != std::string::npos, table.out);
}

BOOST_AUTO_TEST_CASE(without_ranges_nothing_is_outside_and_hand_overs_have_one_of_their_own) {
  const support::TemporaryFolder folder;
  const std::string without = costs_without_ranges(), plain = folder.file("plain.yaml", without);
  const support::Outcome outcome = shell("\"$RACKCAST\" run" + with_costs(plain) + " --json");
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  const json result = json::parse(outcome.out);
  BOOST_TEST(result["metrics"]["outside_range"] == 0);
  BOOST_TEST(outcome.out.find("outside the range") == std::string::npos);

  const std::size_t at = without.find("\n  kv_transfer:\n") + 16;
  const std::string tiny = folder.file("tiny.yaml", without.substr(0, at) + "    range: {points: 9, mean_error: 0.1, p90_error: 0.2, link_mb: [1e-6, 1e6], rows: [1, 2]}\n" + without.substr(at));
  const support::Outcome told = shell("\"$RACKCAST\" run" + with_costs(tiny));
  BOOST_REQUIRE_MESSAGE(told.code == 0, told.err);
  BOOST_TEST(told.out.find("100.0% of hand-overs are outside the range of the cost file's points: kv_transfer 100.0% (rows ") != std::string::npos, told.out);
}
