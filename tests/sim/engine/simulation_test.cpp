#define BOOST_TEST_MODULE simulation
#include "sim/engine/simulation.hpp"

#include <boost/test/unit_test.hpp>
#include <set>

#include "sim/base/error.hpp"
#include "tests/support/small_rack.hpp"

using namespace rackcast;
using namespace rackcast::test;
namespace tt = boost::test_tools;

namespace {

const LinearSteps per_token(0.001, 1e-3, 0);

SimulationOptions one_engine(std::int64_t kv_tokens = KvCache::unlimited) {
  SimulationOptions options;
  options.pools = {pool(EngineRole::aggregated, 1, 1, per_token)};
  options.pools[0].shape.kv_tokens = kv_tokens;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_long_prompt_is_computed_in_chunks_under_the_token_budget) {
  SimulationOptions options = one_engine();
  options.pools[0].shape.limits.tokens = 400;
  Scripted load({{0, 1000, 1}});
  const Run run = simulate(options, load);
  BOOST_TEST(run.outcome.iterations == 3U);
  BOOST_TEST(run.records.rows.at(0).first_token_s == 3 * 0.001 + 1.0, tt::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(a_second_turn_computes_only_what_is_new) {
  SimulationOptions options = one_engine();
  Scripted load({{0, 640, 1, 5, {{1, 10}}}, {10, 960, 1, 5, {{1, 15}}}, {20, 960, 1, 6, {{1, 15}}}});
  const Run run = simulate(options, load);
  BOOST_TEST(run.records.rows.at(1).hit_gpu_tokens == 640U);
  BOOST_TEST(run.records.rows.at(1).first_token_s - 10 == 0.001 + 0.320, tt::tolerance(1e-9));
  BOOST_TEST(run.records.rows.at(2).hit_gpu_tokens == 0U);  // another play
}

BOOST_AUTO_TEST_CASE(two_prompts_of_one_iteration_share_the_prefix_that_the_first_computes) {
  SimulationOptions options = one_engine();
  Scripted load({{0, 640, 1, 5, {{1, 10}}}, {0, 640, 1, 5, {{1, 10}}}});
  const Run run = simulate(options, load);
  BOOST_TEST(run.outcome.iterations == 1U);
  BOOST_TEST(run.records.rows.at(1).hit_gpu_tokens == 640U);
  BOOST_TEST(run.records.rows.at(0).finish_s == 0.001 + 0.641, tt::tolerance(1e-9));  // the second computes its last token
}

BOOST_AUTO_TEST_CASE(a_request_that_finds_no_kv_space_waits_for_its_whole_life) {
  SimulationOptions options = one_engine(1000);
  Scripted load({{0, 500, 101}, {0, 500, 101}});
  const Run run = simulate(options, load);
  const auto& rows = run.records.rows;
  BOOST_TEST(rows.at(1).first_token_s > rows.at(0).finish_s);
  BOOST_TEST(run.outcome.preemptions == 0U);
}

BOOST_AUTO_TEST_CASE(with_preemption_both_start_and_the_younger_is_put_back) {
  SimulationOptions options = one_engine(1100);
  options.pools[0].shape.when_full = KvFullPolicy::preempt;
  Scripted load({{0, 500, 101}, {0, 500, 101}});
  const Run run = simulate(options, load);
  BOOST_TEST(run.outcome.preemptions > 0U);
  BOOST_REQUIRE(run.records.rows.size() == 2U);
  const auto& rows = run.records.rows;
  BOOST_TEST(rows.at(0).preemptions == 0U);
  BOOST_TEST(rows.at(1).preemptions > 0U);
  BOOST_TEST(rows.at(1).first_token_s < rows.at(0).finish_s);
}

BOOST_AUTO_TEST_CASE(preemption_in_a_decode_engine_goes_back_through_the_prefill_engine) {
  SimulationOptions options;
  options.pools = {pool(EngineRole::prefill, 1, 1, per_token), pool(EngineRole::decode, 1, 1, per_token)};
  options.pools[1].shape.when_full = options.pools[0].shape.when_full = KvFullPolicy::preempt;
  options.pools[0].shape.kv_tokens = options.pools[1].shape.kv_tokens = 1100;
  options.transfer.bytes_per_token = 1;
  std::vector<Scripted::Ask> asks;
  for (int i = 0; i < 20; ++i) asks.push_back({0, 300, 150});
  Scripted load(asks);
  const Run run = simulate(options, load);
  BOOST_TEST(run.records.rows.size() == 20U);
  BOOST_TEST(run.outcome.preemptions > 0U);
}

BOOST_AUTO_TEST_CASE(what_can_never_fit_is_refused_and_the_rest_goes_on) {
  SimulationOptions options = one_engine(1000);
  Scripted load({{0, 999, 2}, {0, 500, 10}});
  const Run run = simulate(options, load);
  BOOST_TEST(run.outcome.refused == 1U);
  BOOST_TEST(run.records.rows.size() == 1U);
}

BOOST_AUTO_TEST_CASE(evicted_blocks_come_back_from_host_memory_over_the_host_link) {
  SimulationOptions options = one_engine(1300);
  options.host_tier_tokens_per_node = 100000;
  options.transfer.bytes_per_token = 1e6;
  options.topology.host_bytes_per_s = 1e9;
  options.topology.host_memory_bytes_per_s = 0;
  Scripted load({{0, 640, 1, 1, {{1, 10}}}, {10, 1280, 1, 2, {{1, 20}}}, {20, 640, 1, 1, {{1, 10}}}});
  const Run run = simulate(options, load);
  const RequestRecord& back = run.records.rows.at(2);
  BOOST_TEST(back.hit_gpu_tokens == 0U);
  BOOST_TEST(back.hit_host_tokens == 640U);
  BOOST_TEST(back.first_token_s - 20 == 0.640 + 0.001 + 0.001, tt::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(a_full_decode_engine_holds_prompts_back) {
  SimulationOptions options;
  const LinearSteps fast(1e-4, 0, 0), slow(0.01, 0, 0);
  options.pools = {pool(EngineRole::prefill, 1, 1, fast), pool(EngineRole::decode, 1, 2, slow)};
  options.pools[1].shape.limits.requests = 1;
  options.transfer.bytes_per_token = 1;
  Scripted load({{0, 100, 101}, {0, 100, 101}, {0, 100, 101}});
  const Run run = simulate(options, load);
  BOOST_REQUIRE(run.records.rows.size() == 3U);
  BOOST_TEST(run.records.rows.at(2).first_token_s >= 1.0);
  BOOST_TEST(run.records.rows.at(1).first_token_s < 0.01);
}

BOOST_AUTO_TEST_CASE(a_closed_loop_whose_requests_never_fit_is_told_so_instead_of_asking_forever) {
  SimulationOptions options = one_engine(1000);
  options.duration_s = 10;
  const auto load = make_closed_loop({.users = 4, .lengths = {.input_tokens = 2000, .output_tokens = 10}, .seed = 1});
  BOOST_CHECK_THROW(simulate(options, *load), UserError);
}

BOOST_AUTO_TEST_CASE(an_engine_across_nvlink_domains_sends_over_the_network_cards) {
  SimulationOptions options;
  const LinearSteps fast(1e-4, 0, 0);
  options.pools = {pool(EngineRole::prefill, 1, 4, fast), pool(EngineRole::decode, 1, 4, fast)};
  options.topology = {.gpus_per_rack = 8, .gpus_per_node = 4, .nvlink_domain = 4, .nvlink_bytes_per_s = 1e12, .nic_bytes_per_s = 1e8};
  options.transfer.bytes_per_token = 1e6;
  Scripted load({{0, 100, 2}});
  const Run run = simulate(options, load);
  BOOST_TEST(run.records.rows.at(0).first_token_s == 1e-4 + 1.0, tt::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(engines_that_do_not_fit_into_the_rack_are_refused) {
  BOOST_CHECK_THROW(place_engines({.gpus_per_rack = 8, .gpus_per_node = 4, .nvlink_domain = 8}, {2}, {5}), UserError);
  const auto placed = place_engines({.gpus_per_rack = 8, .gpus_per_node = 4, .nvlink_domain = 8, .racks = 2}, {2, 2}, {4, 2});
  BOOST_TEST(placed[0][1].first_gpu == 8U);
  BOOST_TEST(placed[1][0].first_gpu == 4U);
  BOOST_TEST(placed[1][1].rack == 1U);
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_run_and_another_one_does_not) {
  const auto times = [](std::uint64_t seed) {
    SimulationOptions options;
    const LinearSteps steps(5e-3, 2e-6, 2e-5);
    options.pools = {pool(EngineRole::prefill, 2, 2, steps), pool(EngineRole::decode, 1, 4, steps)};
    options.transfer.bytes_per_token = 1e3;
    options.acceptance = Acceptance(3, 2.5, {});
    options.seed = seed;
    options.duration_s = never_s;
    auto load = make_closed_loop({.users = 40, .lengths = {.input_tokens = 500, .output_tokens = 60}, .turns = 3, .shared_prefix = 0.5, .prefix_groups = 4, .requests = 3000, .seed = 1});
    std::vector<double> list;
    for (const RequestRecord& row : simulate(options, *load).records.rows) list.push_back(row.finish_s);
    return list;
  };
  BOOST_TEST(times(1) == times(1));
  BOOST_TEST(times(1) != times(2));
}

namespace {

// A step that costs by the token that it verifies.
struct TokenSteps final : StepModel {
  double fixed_s, per_token_s;
  TokenSteps(double fixed, double token) : fixed_s(fixed), per_token_s(token) {}
  StepTime step(std::span<const RankBatch> ranks, const ExpertLoad&) const override {
    double slowest = 0;
    for (const RankBatch& rank : ranks) slowest = std::max(slowest, (rank.decode_tokens + rank.prefill_tokens) * per_token_s);
    StepTime time;
    time.total_s = time.other_s = fixed_s + slowest;
    return time;
  }
  std::vector<OperatorCost> operators(std::span<const RankBatch>, const ExpertLoad&) const override { return {}; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(drafts_that_cost_more_than_they_keep_are_not_verified) {
  const TokenSteps dear(0.001, 0.01), cheap(0.01, 1e-6);
  for (const bool adaptive : {false, true})
    for (const TokenSteps* steps : {&dear, &cheap}) {
      SimulationOptions options;
      options.pools = {pool(EngineRole::aggregated, 1, 1, *steps)};
      options.pools[0].shape.adaptive_verify = adaptive;
      options.acceptance = Acceptance(4, 1, std::vector<double>{0.5, 0.5, 0.5, 0.5});
      Scripted load({{0, 1, 2001}});
      const Run run = simulate(options, load);
      const double per_token_s = (run.records.rows.at(0).finish_s - run.records.rows.at(0).first_token_s) / 2000;
      const double kept = options.acceptance.mean();
      const bool none = adaptive && steps == &dear;
      BOOST_TEST(per_token_s == (none ? 0.011 : (steps->fixed_s + 5 * steps->per_token_s) / kept), tt::tolerance(0.05));
      BOOST_TEST(run.outcome.engine_total[0].verified_tokens / run.outcome.engine_total[0].decode_requests == (none ? 1.0 : 5.0));
    }
}
