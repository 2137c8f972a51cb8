#define BOOST_TEST_MODULE terminal
#include <boost/test/unit_test.hpp>

#include "tests/support/program.hpp"

using support::shell;

namespace {

const std::string small = "run scenarios/standard.yaml --set workload.kind=closed_loop --set workload.input=1K --set workload.output=64 "
                          "--set workload.concurrency=16 --set workload.requests=200 --set network=fluid";

// The program's stdout through a pseudo terminal.
std::string on_a_terminal(const std::string& environment, const std::string& arguments) {
  return shell("env -u NO_COLOR TERM=xterm " + environment + " script -qec \"$RACKCAST " + arguments + "\" /dev/null").out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(run_draws_latency_on_a_terminal_and_nowhere_else) {
  BOOST_TEST(on_a_terminal("", small).find("between tokens  ") != std::string::npos);
  BOOST_TEST(on_a_terminal("", small).find("█") != std::string::npos);
  BOOST_TEST(support::rackcast(small).out.find("█") == std::string::npos);
  BOOST_TEST(on_a_terminal("TERM=dumb", small).find("█") == std::string::npos);
  BOOST_TEST(on_a_terminal("", small + " --json").find("█") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(no_color_means_no_colour) {
  BOOST_TEST(on_a_terminal("", small).find("\x1b[1;36m") != std::string::npos);
  const std::string plain = on_a_terminal("NO_COLOR=1", small);
  BOOST_TEST(plain.find("\x1b[1;36m") == std::string::npos);
  BOOST_TEST(plain.find("█") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(plan_draws_its_front_on_a_terminal) {
  const support::TemporaryFolder folder;
  const std::string plan = folder.file("p.yaml", "name: p\nobjective: throughput\nconstraints: {p90_tok_s_user: 100}\nlanes: {from: 8, to: 32, factor: 2}\nshort_run: 2 s\n"
                                       "long_run: 4 s\nbase: standard\nset: [workload.kind=closed_loop, workload.input=1K, workload.output=64, network=fluid]\n"
                                       "axes:\n  - {key: deployment.prefill.engines, values: [1, 2]}\n");
  const std::string drawn = on_a_terminal("NO_COLOR=1", "plan " + plan);
  BOOST_TEST(drawn.find("●") != std::string::npos, drawn);
  BOOST_TEST(drawn.find("P90 tok/s/user") != std::string::npos);
  BOOST_TEST(support::rackcast("plan " + plan).out.find("●") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_run_with_moving_experts_says_how_long_main_model_and_draft_took_and_what_it_cost) {
  const support::Outcome async = support::shell("$RACKCAST run scenarios/eplb-periodic-async.yaml --set 'workload.duration=2 min'");
  BOOST_REQUIRE_EQUAL(async.code, 0);
  for (const char* part : {"experts       main: slowest rank ", "experts       draft: 1 rearrangement of ", "moving them   steps 0.00"})
    BOOST_TEST(async.out.find(part) != std::string::npos, part);
  const support::Outcome balanced = support::shell("$RACKCAST run scenarios/eplb-none.yaml --set 'workload.duration=1 min' --set workload.experts.skew=balanced");
  BOOST_TEST(balanced.out.find("slowest rank") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_stderr_that_takes_nothing_does_not_end_a_run) {
  const std::string wanted = support::rackcast(small).out;
  for (const char* stderr_to : {" 2>/dev/full", " 2>&-"}) {
    const support::Outcome ran = shell("\"$RACKCAST\" " + small + stderr_to);
    BOOST_TEST(ran.code == 0, stderr_to);
    BOOST_TEST(ran.out == wanted, stderr_to);
  }
  BOOST_TEST(shell("\"$RACKCAST\" run nowhere.yaml 2>/dev/full").code == 2);
}

BOOST_AUTO_TEST_CASE(what_was_meant_for_a_closed_stream_gets_into_no_file) {
  const support::TemporaryFolder folder;
  const support::Outcome ran = shell("\"$RACKCAST\" " + small + " --out '" + folder.path + "/out' <&- >&- 2>&-");
  BOOST_TEST(ran.code == 2);  // the table could not be written
  BOOST_TEST(support::rackcast(small + " --out '" + folder.path + "/again'").code == 0);
  for (const char* file : {"/requests.csv", "/resolved.yaml"})
    BOOST_TEST(support::content_of(folder.path + "/out" + file) == support::content_of(folder.path + "/again" + file), file);
  BOOST_TEST(support::content_of(folder.path + "/out/result.json").front() == '{');
}

BOOST_AUTO_TEST_CASE(an_interval_of_samples_is_a_number_that_a_run_can_end_with) {
  const support::TemporaryFolder folder;
  for (const char* interval : {"nan", "inf", "-1", "1e-300", "x"})
    BOOST_TEST(support::rackcast(small + " --out '" + folder.path + "/o' --time-series " + interval).code == 2, interval);
}
