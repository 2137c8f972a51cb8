#define BOOST_TEST_MODULE report_page
#include "analysis/report_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/base/sha256.hpp"

using namespace rackcast;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

StoredResult result(int engines, const std::string& eplb, double throughput) {
  StoredResult r;
  r.name = "s";
  r.status = "done";
  r.parameters = Json{{"deployment.prefill.engines", engines}, {"eplb", eplb}, {"fixed", 1}}.dump();
  r.deployment = Json{{"prefill", {{"engines", engines}, {"dep", 4}}}, {"note", "n" + std::to_string(engines)}}.dump();
  r.metrics = Json{{"total_tok_s_gpu", throughput}, {"ttft_p90_s", nullptr}}.dump();
  return r;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_varies_is_a_column_and_what_does_not_is_a_constant) {
  StoredResult bad = result(9, "x", 0);
  bad.status = "refused";
  bad.error = "does not fit";
  const Json sweep = report_sweep("n", {result(4, "none", 1234.56789), result(8, "static", 2), bad});
  BOOST_TEST(sweep["constants"]["fixed"] == "1");
  BOOST_TEST(sweep["constants"]["prefill.dep"] == "4");
  BOOST_TEST(!sweep["constants"].contains("prefill.engines"));  // said by the axis already
  BOOST_TEST(sweep["failed"].size() == 1u);
  BOOST_TEST(sweep["columns"][0].dump() == R"({"key":"deployment.prefill.engines","role":"axis","values":[4,8]})");
  BOOST_TEST(sweep["columns"][1].dump() == R"({"key":"eplb","role":"axis","dict":["none","static"],"codes":[0,1]})");
  BOOST_TEST(sweep["columns"][2].dump() == R"({"key":"note","role":"scenario","dict":["n4","n8"],"codes":[0,1]})");
  BOOST_TEST(sweep["columns"][3].dump() == R"({"key":"total_tok_s_gpu","role":"metric","values":[1234.57,2.0]})");
}

BOOST_AUTO_TEST_CASE(hostile_names_cannot_leave_the_data_element) {
  const std::string name = "</script><script>alert(1)</script><!-- \xE2\x80\xAE \xF0\x9F\x98\x80 \" ' & \xff";
  const std::string page = report_page("<a>{{REPORT_DATA}}</a>", report_data(name, Json::object()));
  BOOST_TEST(page.find("<script") == std::string::npos);
  BOOST_TEST(page.find("<!--") == std::string::npos);
  const Json back = Json::parse(page.substr(3, page.size() - 7));
  BOOST_TEST(back["title"].get<std::string>().substr(0, 20) == name.substr(0, 20));
}

BOOST_AUTO_TEST_CASE(a_template_without_a_place_for_data_is_refused) {
  BOOST_CHECK_THROW(report_page("<html></html>", Json::object()), UserError);
}

// The built page is committed; its stamp is a hash of the sources, so a stale page fails here.
BOOST_AUTO_TEST_CASE(the_committed_page_was_built_from_the_committed_sources) {
  const fs::path root = fs::path(RACKCAST_SOURCE_DIR) / "analysis/report";
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(root / "src")) names.push_back("src/" + entry.path().filename().string());
  std::sort(names.begin(), names.end());
  names.push_back("build.mjs");
  names.push_back("package.json");
  std::string all;
  for (const std::string& name : names) all += name + std::string(1, '\0') + text_of(root / name) + std::string(1, '\0');
  const std::string page = text_of(root / "dist/report.html");
  std::smatch stamp;
  BOOST_REQUIRE(std::regex_search(page, stamp, std::regex("name=\"source-stamp\" content=\"([0-9a-f]{64})\"")));
  std::string hex;
  for (const std::uint8_t byte : sha256(all)) hex += fmt::format("{:02x}", byte);
  BOOST_TEST(stamp[1].str() == hex);
  BOOST_TEST(page.find("http-equiv=\"Content-Security-Policy\"") != std::string::npos);
}
