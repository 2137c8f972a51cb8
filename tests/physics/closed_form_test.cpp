// Results that can be worked out by hand.
#define BOOST_TEST_MODULE closed_form
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/support/small_rack.hpp"

using namespace rackcast;
using namespace rackcast::test;
namespace tt = boost::test_tools;

namespace {

SimulationOptions prefill_decode(const StepModel& prefill, const StepModel& decode, std::uint32_t prefill_ranks, std::uint32_t decode_ranks) {
  SimulationOptions options;
  options.pools = {pool(EngineRole::prefill, 1, prefill_ranks, prefill), pool(EngineRole::decode, 1, decode_ranks, decode)};
  options.topology.nvlink_bytes_per_s = 1e9;
  options.transfer.bytes_per_token = 1e6;  // 1,000 tokens: 1 s
  options.router = RouterPolicy::round_robin;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_server_with_poisson_arrivals_waits_as_pollaczek_and_khinchine_say) {
  // M/D/1: service D, load rho, mean wait rho D / (2 (1 - rho)).
  const double service_s = 0.01;
  const LinearSteps steps(service_s, 0, 0);
  for (const double rho : {0.3, 0.6, 0.8}) {
    OpenLoopOptions arrivals;
    arrivals.rate_per_s = rho / service_s;
    arrivals.lengths = {.input_tokens = 100, .output_tokens = 1};
    arrivals.requests = 400000;
    auto load = make_open_loop(arrivals);
    SimulationOptions options;
    options.pools = {pool(EngineRole::aggregated, 1, 1, steps)};
    options.pools[0].shape.limits = {100, 1};  // one request at a time
    options.duration_s = never_s;
    const Run run = simulate(options, *load);
    double wait = 0;
    for (const RequestRecord& row : run.records.rows) wait += row.first_token_s - row.arrival_s - service_s;
    wait /= static_cast<double>(run.records.rows.size());
    BOOST_TEST_CONTEXT("rho " << rho) BOOST_TEST(wait == rho * service_s / (2 * (1 - rho)), tt::tolerance(0.03));
  }
}

BOOST_AUTO_TEST_CASE(littles_law_holds_in_steady_state) {
  const LinearSteps steps(5e-3, 2e-6, 2e-5);
  OpenLoopOptions arrivals;
  arrivals.rate_per_s = 20;
  arrivals.lengths = {.input_tokens = 1024, .output_tokens = 128, .range_ratio = 0.5};
  arrivals.warmup_requests = 200;
  auto load = make_open_loop(arrivals);
  SimulationOptions options;
  options.pools = {pool(EngineRole::aggregated, 2, 2, steps)};
  options.duration_s = 2000;
  const Run run = simulate(options, *load);
  double in_system = 0;
  for (const RequestRecord& row : run.records.rows) in_system += row.finish_s - row.arrival_s;
  const double window_s = run.outcome.window_end_s - run.outcome.window_start_s;
  const double rate = static_cast<double>(run.outcome.arrivals_measured) / window_s;
  const double mean = in_system / static_cast<double>(run.records.rows.size());
  BOOST_TEST(run.outcome.in_flight_area / window_s == rate * mean, tt::tolerance(0.02));
}

BOOST_AUTO_TEST_CASE(an_iteration_lasts_as_long_as_its_slowest_rank) {
  const LinearSteps steps(0, 1e-3, 0);
  SimulationOptions options;
  options.pools = {pool(EngineRole::aggregated, 1, 3, steps)};
  options.router = RouterPolicy::round_robin;
  Scripted load({{0, 100, 1}, {0, 700, 1}, {0, 300, 1}});
  const Run run = simulate(options, load);
  BOOST_REQUIRE(run.records.rows.size() == 3U);
  for (const RequestRecord& row : run.records.rows) BOOST_TEST(row.finish_s == 0.7, tt::tolerance(1e-12));
  BOOST_TEST(run.outcome.iterations == 1U);
}

BOOST_AUTO_TEST_CASE(a_prompts_kv_takes_its_bytes_over_the_links_rate) {
  const LinearSteps prefill(0.5, 0, 0), decode(0.1, 0, 0);
  const SimulationOptions options = prefill_decode(prefill, decode, 1, 1);
  Scripted load({{1, 1000, 11}});
  const Run run = simulate(options, load);
  BOOST_REQUIRE(run.records.rows.size() == 1U);
  BOOST_TEST(run.records.rows[0].first_token_s == 1 + 0.5 + 1.0, tt::tolerance(1e-9));
  BOOST_TEST(run.records.rows[0].finish_s == 2.5 + 10 * 0.1, tt::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(two_transfers_from_one_gpu_share_its_link_and_two_from_two_gpus_do_not) {
  const LinearSteps prefill(0.5, 0, 0), decode(0.1, 0, 0);
  for (const std::uint32_t prefill_ranks : {1U, 2U}) {
    const SimulationOptions options = prefill_decode(prefill, decode, prefill_ranks, 2);
    Scripted load({{0, 1000, 2}, {0, 1000, 2}});
    const Run run = simulate(options, load);
    BOOST_REQUIRE(run.records.rows.size() == 2U);
    for (const RequestRecord& row : run.records.rows)
      BOOST_TEST(row.first_token_s == 0.5 + (prefill_ranks == 1 ? 2.0 : 1.0), tt::tolerance(1e-9));
  }
}

BOOST_AUTO_TEST_CASE(descriptors_are_posted_one_after_another_and_control_comes_first) {
  const LinearSteps prefill(0.5, 0, 0), decode(0.1, 0, 0);
  SimulationOptions options = prefill_decode(prefill, decode, 1, 2);
  options.transfer.control_s = 0.2;
  options.transfer.nvlink.post_s = 0.01;
  options.transfer.nvlink.execute_s = 0.02;
  options.transfer.block_tokens = 100;
  options.transfer.regions = 2;               // 20 descriptors: 0.2 s to post, 0.4 s to execute
  options.topology.nvlink_bytes_per_s = 1e15;
  Scripted load({{0, 1000, 2}, {0, 1000, 2}});
  const Run run = simulate(options, load);
  BOOST_REQUIRE(run.records.rows.size() == 2U);
  BOOST_TEST(run.records.rows[0].first_token_s == 0.5 + 0.2 + 0.2 + 0.4, tt::tolerance(1e-5));
  BOOST_TEST(run.records.rows[1].first_token_s == 0.5 + 0.2 + 0.4 + 0.4, tt::tolerance(1e-5));
}

BOOST_AUTO_TEST_CASE(speculation_divides_the_steps_of_an_answer) {
  const LinearSteps steps(0.01, 0, 0);
  SimulationOptions options;
  options.pools = {pool(EngineRole::aggregated, 1, 1, steps)};
  options.acceptance = Acceptance(5, 3.51, {});
  Scripted load({{0, 100, 35101}});
  const Run run = simulate(options, load);
  const RequestRecord& row = run.records.rows.at(0);
  BOOST_TEST((row.finish_s - row.first_token_s) / 35100 == 0.01 / 3.51, tt::tolerance(0.02));
}
