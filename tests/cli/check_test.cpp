// `rackcast check` on files that lie anywhere: their keys say what they are.
#define BOOST_TEST_MODULE check
#include <boost/test/unit_test.hpp>

#include "tests/support/program.hpp"

BOOST_AUTO_TEST_CASE(a_file_of_ones_own_is_checked_as_what_its_keys_say) {
  const support::TemporaryFolder folder;
  for (const auto& [file, kind] : {std::pair{"models/deepseek-r1", "model"}, {"gpus/h200", "gpu"}, {"racks/hgx-h200", "rack"},
                                   {"prices/deepseek-2026-09", "prices"}, {"costs/gb300", "costs"}, {"sweep-small", "sweep"},
                                   {"plan-rack", "plan"}, {"standard", "scenario"}}) {
    const std::string copy = folder.file("mine.yaml", support::content_of(std::string(RACKCAST_SOURCE_DIR "/scenarios/") + file + ".yaml"));
    const support::Outcome ran = support::rackcast("check '" + copy + "'");
    BOOST_TEST(ran.out == copy + ": ok (" + kind + ")\n", ran.out << ran.err);
  }
}

BOOST_AUTO_TEST_CASE(a_model_without_a_draft_says_that_its_drafts_are_free) {
  const std::string run = "run scenarios/standard.yaml --set model=kimi-k2.5 --set workload.kind=closed_loop --set workload.input=1K --set workload.output=64 "
                          "--set workload.concurrency=16 --set workload.requests=100 --set network=fluid --json";
  BOOST_TEST(support::rackcast(run).out.find("kimi-k2.5 has no draft model here, so its drafts take no time") != std::string::npos);
  BOOST_TEST(support::rackcast(run + " --set deployment.speculation.draft_tokens=0 --set deployment.speculation.acceptance_length=1").out.find("no draft model") == std::string::npos);
}
