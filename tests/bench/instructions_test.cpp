// Instructions that fixed runs take, counted by callgrind: the one measure of speed that a busy machine does not change.
// Compared with the stored counts of the compiler and build that CI uses; others are printed only.
#define BOOST_TEST_MODULE bench_instructions
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>

#include "sim/engine/build.hpp"
#include "tests/support/fixed_loads.hpp"
#include "tests/support/program.hpp"

using namespace rackcast;
using namespace rackcast::test;

namespace {

struct Counted {
  const char* name;
  const char* load;
  double stored;  // instructions
};

// g++ 12.2, RelWithDebInfo, RACKCAST_CHECKS. A change of more than 5% is worth a sentence in the commit.
constexpr const char* stored_compiler = "12.2.0";
constexpr Counted runs[] = {
    {"aggregated", "5,000 requests of sessions of 4 turns, two aggregated engines DEP4 with a linear cost", 36.3e6},
    {"split", "the same, two prefill engines DEP2 and a decode engine DEP4, KV over the fluid network", 49.4e6},
    {"costs", "300 requests 8K/256, 64 users, V4.1-Flash on GB300, 1P1D DEP4 and DEP8, speculation, shipped costs", 10.1e6},
};

#if defined(RACKCAST_CHECKS) && defined(__OPTIMIZE__)
constexpr bool built_as_stored = true;
#else
constexpr bool built_as_stored = false;
#endif

}  // namespace

// Callgrind counts inside this function only.
extern "C" __attribute__((noinline)) void counted_run(Simulation& simulation) { simulation.run(); }

// Runs in the child under callgrind; does nothing without its name.
BOOST_AUTO_TEST_CASE(the_run_that_is_counted) {
  const char* name = std::getenv("RACKCAST_COUNTED_RUN");
  if (!name) return;
  const auto network = make_fluid_network();
  RunObserver nobody;
  if (std::string(name) == "costs") {
    const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});
    const std::string text = "name: counted\nrack: gb300-nvl72\nmodel: deepseek-v4.1-flash\nnetwork: fluid\n"
                             "deployment:\n  prefill: {engines: 1, dep: 4}\n  decode: {engines: 1, dep: 8}\n"
                             "  speculation: {draft_tokens: 5, acceptance_length: 3.51}\n"
                             "workload: {kind: closed_loop, concurrency: 64, input: 8K, output: 256, range_ratio: 0.8, requests: 300}\n";
    const BuiltRun built = build_run(read_scenario(YamlSource{"counted", text}, catalog, {}), catalog);
    Simulation simulation(built.options, *built.load, *network, nobody);
    counted_run(simulation);
    return;
  }
  const LinearSteps steps(5e-3, 2e-6, 2e-5);
  const auto load = sessions(5000);
  Simulation simulation(fixed_cost(steps, std::string(name) == "split"), *load, *network, nobody);
  counted_run(simulation);
}

BOOST_AUTO_TEST_CASE(instructions_are_the_stored_ones) {
  if (std::getenv("RACKCAST_COUNTED_RUN")) return;
  if (support::shell("valgrind --version").code != 0) {
    BOOST_TEST_MESSAGE("skipped: valgrind is not installed");
    std::printf("skipped: valgrind is not installed\n");
    return;
  }
  const std::string self = boost::unit_test::framework::master_test_suite().argv[0];
  for (const Counted& run : runs) {
    const support::TemporaryFolder folder;
    const std::string counts = folder.path + "/counts";
    const support::Outcome outcome =
        support::shell("RACKCAST_COUNTED_RUN=" + std::string(run.name) + " valgrind --tool=callgrind --toggle-collect=counted_run --callgrind-out-file='" + counts +
                       "' '" + self + "' --run_test=the_run_that_is_counted");
    BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    const std::string text = support::content_of(counts);
    const std::size_t at = text.find("\nsummary: ");
    BOOST_REQUIRE(at != std::string::npos);
    const double counted = std::strtod(text.c_str() + at + 10, nullptr);
    std::printf("%-110s %.0f instructions (stored %.0f)\n", run.load, counted, run.stored);
    BOOST_TEST(counted > 0);
    if (built_as_stored && std::string(__VERSION__).rfind(stored_compiler, 0) == 0)
      BOOST_TEST(counted == run.stored, boost::test_tools::tolerance(0.05));
  }
}
