#define BOOST_TEST_MODULE compare_verb
#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"

using nlohmann::json;
using support::shell;

namespace {

std::string scenario(const std::string& prefill, const std::string& decode, const std::string& more = "") {
  return "name: n\nbase: standard\nnetwork: fluid\ndeployment:\n  prefill: {engines: " + prefill + ", dep: 4}\n  decode: {engines: 1, dep: " + decode +
         "}\n" + more + "workload: {kind: closed_loop, input: 1K, output: 64, concurrency: 64, requests: 300}\n";
}

json alone(const std::string& file) {
  const support::Outcome outcome = shell("\"$RACKCAST\" run " + file + " --json");
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  return json::parse(outcome.out)["metrics"];
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_step_for_every_change_from_the_first_scenario_to_the_second) {
  const support::TemporaryFolder folder;
  const std::string a = folder.file("a.yaml", scenario("2", "8")), b = folder.file("b.yaml", scenario("4", "16", "  kv_transfer: {mode: pull}\n"));
  const support::Outcome outcome = shell("\"$RACKCAST\" compare " + a + " " + b + " --json");
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  const json steps = json::parse(outcome.out)["steps"];
  BOOST_REQUIRE(steps.size() == 4u);
  BOOST_TEST(steps[0]["changes"].empty());
  std::string groups;
  for (std::size_t i = 1; i < steps.size(); ++i) groups += steps[i]["changes"][0]["group"].get<std::string>() + " ";
  BOOST_TEST(groups.find("deployment.prefill ") != std::string::npos, groups);
  BOOST_TEST(groups.find("deployment.decode ") != std::string::npos, groups);
  BOOST_TEST(groups.find("deployment.kv_transfer.mode ") != std::string::npos, groups);
  // The ends are what `run` says of the two files: nothing of the difference is left over.
  for (const char* metric : {"total_tok_s_gpu", "p90_tok_s_user", "ttft_p90_s", "gpus"}) {
    BOOST_TEST(steps[0]["metrics"][metric] == alone(a)[metric], metric);
    BOOST_TEST(steps[3]["metrics"][metric] == alone(b)[metric], metric);
  }
}

BOOST_AUTO_TEST_CASE(changes_that_cannot_stand_alone_are_one_step) {
  const support::TemporaryFolder folder;
  // 16 x 4 + 8 and 8 x 4 + 40 fit on 72 GPUs, 16 x 4 + 40 does not.
  const std::string a = folder.file("a.yaml", scenario("8", "40")), b = folder.file("b.yaml", scenario("16", "8"));
  const support::Outcome outcome = shell("\"$RACKCAST\" compare " + a + " " + b + " --json");
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  const json steps = json::parse(outcome.out)["steps"];
  BOOST_REQUIRE(steps.size() == 2u);
  BOOST_TEST(steps[1]["changes"].size() == 2u);
  BOOST_TEST(steps[1]["status"] == "done");
}

BOOST_AUTO_TEST_CASE(the_table_ends_with_both_and_equal_scenarios_are_refused) {
  const support::TemporaryFolder folder;
  const std::string a = folder.file("a.yaml", scenario("2", "8")), b = folder.file("b.yaml", scenario("2", "16"));
  const support::Outcome outcome = shell("\"$RACKCAST\" compare " + a + " " + b);
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  BOOST_TEST(outcome.out.find("A: " + a) != std::string::npos, outcome.out);
  BOOST_TEST(outcome.out.find("B: " + b) != std::string::npos, outcome.out);
  BOOST_TEST(outcome.out.find("deployment.decode.dep: 8 -> 16") != std::string::npos, outcome.out);
  const support::Outcome same = shell("\"$RACKCAST\" compare " + a + " " + a);
  BOOST_TEST(same.code == 2);
  BOOST_TEST(same.err.find("are the same") != std::string::npos, same.err);
  BOOST_TEST(shell("\"$RACKCAST\" compare " + a + " " + folder.path + "/none.yaml").code == 2);
}
