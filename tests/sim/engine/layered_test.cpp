#define BOOST_TEST_MODULE layered
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "sim/engine/layered_step.hpp"
#include "sim/engine/run.hpp"

using namespace rackcast;
namespace tt = boost::test_tools;

namespace {

const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});

nlohmann::ordered_json run(const std::string& fidelity, const std::string& range_ratio) {
  const std::string text = "name: layered\nrack: gb300-nvl72\nmodel: deepseek-v4.1-flash\nnetwork: fluid\nfidelity: " + fidelity +
                           "\ndeployment:\n  prefill: {engines: 2, dep: 4}\n  decode: {engines: 1, dep: 8}\n"
                           "  speculation: {draft_tokens: 5, acceptance_length: 3.51}\n"
                           "workload: {kind: closed_loop, concurrency: 64, input: 8K, output: 512, range_ratio: " + range_ratio +
                           ", requests: 600, warmup_count: 128}\n";
  return run_scenario(read_scenario(YamlSource{"layered", text}, catalog, {}), catalog, {});
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_expected_maximum_is_that_of_drawn_normals) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (const std::vector<double>& means : {std::vector<double>{1}, std::vector<double>(8, 1.0), std::vector<double>{1, 0.99, 0.5, 1.01}}) {
    double sum = 0;
    const int draws = 200000;
    for (int i = 0; i < draws; ++i) {
      double most = 0;
      for (const double mean : means) most = std::max(most, mean * (1 + 0.02 * normal(random)));
      sum += most;
    }
    BOOST_TEST(expected_maximum(means, 0.02) == sum / draws, tt::tolerance(3e-4));
  }
}

// Even loads (equal lengths) and uneven ones: layer by layer the run is slower by what the formula says, within 1%.
BOOST_AUTO_TEST_CASE(layered_runs_agree_with_collapsed_ones_after_the_correction_for_sums_of_maxima) {
  for (const char* range_ratio : {"1", "0.2"}) {
    const auto collapsed = run("collapsed", range_ratio), layered = run("layered", range_ratio);
    const auto& pools = layered["breakdown"]["pools"];
    const double decode = pools[1]["layered"]["expected_over_collapsed"].get<double>();
    BOOST_TEST(decode > 1.0);
    BOOST_TEST_CONTEXT("range ratio " << range_ratio << ", correction " << decode) {
      BOOST_TEST(layered["metrics"]["tpot_p90_s"].get<double>() == collapsed["metrics"]["tpot_p90_s"].get<double>() * decode, tt::tolerance(0.01));
      BOOST_TEST(layered["metrics"]["total_tok_s_gpu"].get<double>() == collapsed["metrics"]["total_tok_s_gpu"].get<double>() / decode, tt::tolerance(0.01));
    }
  }
}
