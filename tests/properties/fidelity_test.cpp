// collapsed, layered and flow are three ways to simulate one engine: on random small scenarios they agree.
#define BOOST_TEST_MODULE fidelity
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <random>
#include <string_view>

#include "tests/support/figures.hpp"

using namespace rackcast;
namespace tt = boost::test_tools;

namespace {

std::string draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const std::uint64_t dep = std::uint64_t{4} << below(2), users = dep * (8 + below(56)), input = std::uint64_t{512} << below(5), output = std::uint64_t{64} << below(3);
  const char* models[] = {"deepseek-v4-flash", "deepseek-v4.1-flash"};
  const std::string model = models[below(2)];
  const bool split = below(2) == 0, speculates = below(2) == 0, skewed = below(2) == 0;
  std::string text = fmt::format("name: test\nrack: gb300-nvl72\nmodel: {}\nnetwork: fluid\nprices: {{list: deepseek-2026-09}}\nseed: {}\ndeployment:\n", model, seed);
  text += split ? fmt::format("  prefill: {{engines: 1, dep: 4}}\n  decode: {{engines: 1, dep: {}}}\n", dep) : fmt::format("  aggregated: {{engines: 1, dep: {}}}\n", dep);
  if (speculates) text += "  speculation: {draft_tokens: 3, acceptance_length: 2.4}\n";
  return text + fmt::format("workload: {{kind: closed_loop, concurrency: {}, input: {}, output: {}, range_ratio: 0.5, requests: {}, warmup_count: {}{}}}\n", users, input,
                            output, 10 * users, users, skewed ? ", experts: {skew: zipf, exponent: 0.8}" : "");
}

}  // namespace

BOOST_AUTO_TEST_CASE(three_fidelities_agree_on_random_small_scenarios) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const std::string yaml = draw(seed);
    test::Figures collapsed = test::figures_of(yaml);
    test::Figures layered = test::figures_of(yaml, {"fidelity=layered"});
    test::Figures flow = test::figures_of(yaml, {"fidelity=flow"});
    BOOST_TEST_CONTEXT(yaml)
    for (const char* name : {"total_tok_s_rack", "p90_tok_s_user", "tpot_p50_s"}) BOOST_TEST_CONTEXT(name) {
      const bool percentile = std::string_view(name) == "p90_tok_s_user";  // of a few hundred requests
      BOOST_TEST(layered[name] == collapsed[name], tt::tolerance(percentile ? 0.015 : 0.01));
      BOOST_TEST(flow[name] == collapsed[name], tt::tolerance(0.03));
    }
  }
}
