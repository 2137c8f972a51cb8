// Transcripts of the command line: what is typed, what comes back, with which exit code.
#define BOOST_TEST_MODULE cli_frame
#include <boost/test/unit_test.hpp>

#include "tests/support/program.hpp"

using support::Outcome;
using support::rackcast;
using support::shell;

namespace {

void expect(const std::string& arguments, int code, const std::string& out, const std::string& err) {
  const Outcome outcome = rackcast(arguments);
  BOOST_TEST_CONTEXT(arguments) {
    BOOST_TEST(outcome.code == code);
    BOOST_TEST(outcome.out == out);
    BOOST_TEST(outcome.err == err);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(usage_errors_end_with_2_and_say_what_helps) {
  expect("", 2, "", "rackcast: A subcommand is required\n`rackcast --help` shows how it is used\n");
  expect("lsit", 2, "", "rackcast: 'lsit' is not a verb; did you mean 'list'?\n");
  expect("frobnicate", 2, "", "rackcast: 'frobnicate' is not a verb; `rackcast --help` lists the verbs\n");
  expect("check", 2, "", "rackcast: FILE is required\n`rackcast check --help` shows how it is used\n");
  expect("list gpu", 2, "", "rackcast: list: 'gpu' cannot be listed; did you mean 'gpus'?\n");
  expect("schema scenari", 2, "", "rackcast: 'scenari' is not a kind of file; did you mean 'scenario'?\n");
  expect("schema --json", 2, "", "rackcast: schema --json needs the kind of file, as in: rackcast schema scenario --json\n");
  expect("list gpus --bogus", 2, "",
         "rackcast: The following argument was not expected: --bogus\n`rackcast list --help` shows how it is used\n");
  for (const char* seed : {"-1", "1.5", "99999999999999999999"})
    expect(std::string("run scenarios/standard.yaml --seed ") + seed, 2, "",
           std::string("rackcast: --seed: '") + seed + "' is no whole number from 0 to 2^64 - 1\n`rackcast run --help` shows how it is used\n");
  expect("list gpus --data-dir /nowhere", 2, "", "rackcast: --data-dir says '/nowhere', which is no folder\n");
}

BOOST_AUTO_TEST_CASE(help_and_version_end_with_0) {
  BOOST_TEST(rackcast("--version").code == 0);
  BOOST_TEST(rackcast("--version").out.find('.') != std::string::npos);
  BOOST_TEST(rackcast("--help").code == 0);
  for (const char* verb : {"check", "schema", "list"}) {
    const Outcome help = rackcast(std::string(verb) + " --help");
    BOOST_TEST(help.code == 0);
    BOOST_TEST(help.out.find("Example:\n  rackcast " + std::string(verb)) != std::string::npos, verb);
    BOOST_TEST(help.err.empty());
  }
}

BOOST_AUTO_TEST_CASE(check_says_ok_or_everything_that_is_wrong) {
  expect("check scenarios/standard.yaml scenarios/gpus/h200.yaml", 0, "scenarios/standard.yaml: ok (scenario)\nscenarios/gpus/h200.yaml: ok (gpu)\n", "");
  const support::TemporaryFolder folder;
  const std::string bad = folder.file("bad.yaml", "name: x\nrack: gb300\nmodel: deepseek-v4.1-flash\ndeployment:\n  decode: {engines: 1, dpe: 8}\nworklaod: {}\n");
  expect("check " + bad, 2, "",
         bad + ":2:7: rack: 'gb300' is not among the racks; `rackcast list racks` shows them\n" +
             bad + ":5:3: deployment: needs prefill and decode, or aggregated, or prefill alone\n" +
             bad + ":5:11: deployment.decode.dep: give one of dep and tp\n" +
             bad + ":5:24: deployment.decode.dpe: is not a key here; did you mean 'dep'?\n" +
             bad + ":6:1: worklaod: is not a key here; did you mean 'workload'?\n");
}

BOOST_AUTO_TEST_CASE(every_shipped_file_passes_check) {
  const Outcome outcome = shell("find scenarios -name '*.yaml' | sort | xargs \"$RACKCAST\" check");
  BOOST_TEST(outcome.err == "");
  BOOST_TEST(outcome.code == 0);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_there_or_no_file_is_bad_input) {
  expect("check /nowhere/x.yaml", 2, "", "/nowhere/x.yaml: there is no such file\n");
  expect("check /tmp", 2, "", "/tmp: is not a plain file\n");
}

BOOST_AUTO_TEST_CASE(set_works_from_the_command_line) {
  BOOST_TEST(rackcast("check scenarios/standard.yaml --set deployment.decode.dep=16 --set workload.concurrency=64").code == 0);
  expect("check scenarios/standard.yaml --set rack.gpus=8", 2, "",
         "scenarios/standard.yaml:11:3: deployment: needs 64 GPUs, but 1 x gb300-nvl72 has 8\n");
  expect("check --set rack.gpus=x scenarios/standard.yaml", 2, "", "--set rack.gpus=x: rack.gpus: 'x' is not a whole number\n");
}

BOOST_AUTO_TEST_CASE(a_deployment_that_does_not_fit_is_refused_with_its_sum) {
  const Outcome outcome = rackcast("check scenarios/standard.yaml --set rack.gpu.memory='20 GB'");
  BOOST_TEST(outcome.code == 2);
  BOOST_TEST(outcome.err.find("deployment.") != std::string::npos, outcome.err);
}

BOOST_AUTO_TEST_CASE(list_and_schema_speak_json) {
  for (const char* what : {"gpus", "racks", "models", "prices", "costs", "policies", "traces", "suites"}) {
    BOOST_TEST(rackcast(std::string("list ") + what).code == 0, what);
    const Outcome json = rackcast(std::string("list --json ") + what);
    BOOST_TEST(json.code == 0);
    BOOST_TEST(json.out.front() == '[');
  }
  BOOST_TEST(rackcast("schema scenario --json").out.find("\"additionalProperties\": false") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_key_reference_is_up_to_date) {
  BOOST_TEST((rackcast("schema").out == support::content_of(RACKCAST_SOURCE_DIR "/scenarios/README.md")),
             "scenarios/README.md is not what `rackcast schema` prints: write it anew with\n  rackcast schema > scenarios/README.md");
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_not_success) {
  const Outcome outcome = shell("\"$RACKCAST\" schema >/dev/full");
  BOOST_TEST(outcome.code == 2);
  BOOST_TEST(outcome.err == "rackcast: the result could not be written to stdout\n");
}

BOOST_AUTO_TEST_CASE(data_is_found_in_the_named_folder_first) {
  const support::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path + "/gpus");
  folder.file("gpus/mine.yaml", "base: h200\nname: mine\nmemory: 200 GiB\n");
  BOOST_TEST(rackcast("list gpus --data-dir " + folder.path).out.find("mine") != std::string::npos);
  BOOST_TEST(shell("RACKCAST_SCENARIOS=" + folder.path + " \"$RACKCAST\" list gpus").out.find("mine") != std::string::npos);
  BOOST_TEST(rackcast("check scenarios/standard.yaml --set rack.gpu=mine --set deployment.prefill.cost=gb300 --set deployment.decode.cost=gb300 --data-dir " + folder.path).code == 0);
}
