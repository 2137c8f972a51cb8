#define BOOST_TEST_MODULE failures
#include "sim/engine/failures.hpp"

#include <boost/test/unit_test.hpp>

#include "sim/base/error.hpp"
#include "tests/support/small_rack.hpp"

using namespace rackcast;
using namespace rackcast::test;
namespace tt = boost::test_tools;

namespace {

const LinearSteps prefill_steps(0.05, 1e-4, 0), decode_steps(0.01, 0, 0);

FailureSource at(FailureKind kind, std::uint32_t engine, double at_s) {
  FailureSource source;
  source.kind = kind;
  source.first_engine = engine;
  source.at_s = at_s;
  source.down_s = 3;
  return source;
}

// Engines 0 and 1 prefill, 2 and 3 decode.
SimulationOptions two_and_two(KvTransferMode mode = KvTransferMode::push) {
  SimulationOptions options;
  options.pools = {pool(EngineRole::prefill, 2, 2, prefill_steps), pool(EngineRole::decode, 2, 2, decode_steps)};
  for (PoolOptions& p : options.pools) p.shape.kv_tokens = 200000;
  options.transfer.mode = mode;
  options.transfer.posting = mode == KvTransferMode::pull ? KvPosting::step : KvPosting::thread;
  options.transfer.groups = 4;
  options.transfer.bytes_per_token = 1000;
  options.transfer.nvlink = options.transfer.nic = {0, 1e-3, 1e-3};
  options.topology.nvlink_bytes_per_s = 20e6;
  options.topology.nvlink_domain = 4;        // prefill and decode engines are in different domains: NICs join them
  options.topology.nic_bytes_per_s = 20e6;
  options.host_tier_tokens_per_node = 1000000;
  options.failures.detection_s = 0.5;
  return options;
}

std::vector<Scripted::Ask> many(int count) {
  std::vector<Scripted::Ask> asks;
  for (int i = 0; i < count; ++i)
    asks.push_back({0.05 * i, static_cast<std::uint32_t>(640 + 64 * (i % 20)), static_cast<std::uint32_t>(20 + i % 150), static_cast<std::uint32_t>(i % 7),
                    {{static_cast<std::uint32_t>(1 + 1000 * (i % 3)), static_cast<std::uint32_t>(10 + i % 20)}}});
  return asks;
}

void totals_agree(const Run& run, std::uint64_t asked) {
  BOOST_TEST(run.outcome.arrivals == asked);
  BOOST_TEST(run.outcome.finished_measured + run.outcome.lost_measured + run.outcome.unfinished_measured == asked);
  BOOST_TEST(run.records.rows.size() == run.outcome.finished_measured);
  BOOST_TEST(run.outcome.retried_measured <= run.outcome.finished_measured);
}

}  // namespace

BOOST_AUTO_TEST_CASE(in_every_failure_each_request_ends_and_totals_agree) {
  for (const KvTransferMode mode : {KvTransferMode::pull, KvTransferMode::push, KvTransferMode::push_layerwise})
    for (const InFlightPolicy policy : {InFlightPolicy::retry, InFlightPolicy::lose})
      for (const FailureKind kind : {FailureKind::engine, FailureKind::gpu, FailureKind::nvlink, FailureKind::straggler, FailureKind::nic})
        for (const std::uint32_t engine : {0U, 2U}) {
          BOOST_TEST_CONTEXT("mode " << static_cast<int>(mode) << " policy " << static_cast<int>(policy) << " kind " << static_cast<int>(kind) << " engine " << engine) {
            SimulationOptions options = two_and_two(mode);
            options.failures.in_flight = policy;
            options.failures.spare_gpus = 1;
            FailureSource source = at(kind, engine, 4);
            if (kind == FailureKind::straggler) source.share = 0.5;
            if (kind == FailureKind::straggler || kind == FailureKind::nic) source.lasts_s = 2;
            options.failures.sources = {source};
            Scripted load(many(300));
            const Run run = simulate(options, load);
            totals_agree(run, 300);
            BOOST_TEST(run.outcome.unfinished_measured == 0U);
            const bool takes = kind == FailureKind::engine || kind == FailureKind::gpu || kind == FailureKind::nvlink;
            if (takes && policy == InFlightPolicy::retry) BOOST_TEST(run.outcome.retried_measured > 0U);
            if (takes && policy == InFlightPolicy::lose) BOOST_TEST(run.outcome.lost_measured > 0U);
            if (!takes || policy == InFlightPolicy::retry) BOOST_TEST(run.outcome.lost_measured == 0U);
          }
        }
}

BOOST_AUTO_TEST_CASE(random_failures_of_all_kinds_at_once_lose_nothing_unaccounted) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimulationOptions options = two_and_two(seed % 2 ? KvTransferMode::push_layerwise : KvTransferMode::pull);
    options.seed = seed;
    options.duration_s = 25;
    options.failures.spare_gpus = 100;
    options.failures.in_flight = seed % 3 ? InFlightPolicy::retry : InFlightPolicy::lose;
    for (const FailureKind kind : {FailureKind::engine, FailureKind::gpu, FailureKind::nic, FailureKind::straggler})
      for (const std::uint32_t first : {0U, 2U}) {
        FailureSource source = at(kind, first, -1);
        source.engines = source.gpus = 2;
        source.every_s = 4;
        source.down_s = 0.7;
        source.lasts_s = 0.5;
        if (kind == FailureKind::straggler) source.share = 0.7;
        options.failures.sources.push_back(source);
      }
    Scripted load(many(400));
    const Run run = simulate(options, load);
    totals_agree(run, run.outcome.arrivals);
    BOOST_TEST(run.outcome.failures.size() > 4U);
  }
}

BOOST_AUTO_TEST_CASE(an_aggregated_engine_gives_its_requests_to_the_other_one) {
  SimulationOptions options;
  const LinearSteps steps(0.01, 1e-5, 0);
  options.pools = {pool(EngineRole::aggregated, 2, 1, steps)};
  options.failures.detection_s = 0;
  options.failures.sources = {at(FailureKind::engine, 0, 1.0)};
  Scripted load({{0, 100, 201}, {0, 100, 201}});
  const Run run = simulate(options, load);
  totals_agree(run, 2);
  BOOST_TEST(run.outcome.retried_measured == 1U);
  // About 100 tokens were given in the first second; the rest takes as long as it would have, elsewhere.
  BOOST_TEST(run.records.rows.at(1).finish_s == 2.0 + 0.012, tt::tolerance(0.02));
}

BOOST_AUTO_TEST_CASE(requests_that_wait_at_the_door_lose_nothing_with_an_engine) {
  for (const InFlightPolicy policy : {InFlightPolicy::retry, InFlightPolicy::lose}) {
    SimulationOptions options = two_and_two();
    options.admission.requests = 3;
    options.failures.in_flight = policy;
    options.failures.sources = {at(FailureKind::engine, 0, 2.0), at(FailureKind::engine, 3, 4.0)};
    Scripted load(many(200));
    const Run run = simulate(options, load);
    totals_agree(run, 200);
    BOOST_TEST(run.outcome.waited_at_door > 100U);
    BOOST_TEST(run.outcome.unfinished_measured == 0U);
    BOOST_TEST(run.outcome.lost_measured <= 3U * 2U);
  }
}

BOOST_AUTO_TEST_CASE(what_another_cache_holds_is_not_computed_again) {
  SimulationOptions options = two_and_two();
  options.failures.detection_s = 0;
  options.failures.sources = {at(FailureKind::engine, 2, 2.0)};
  Scripted load({{0, 6400, 300, 1, {{1, 100}}}});
  const Run run = simulate(options, load);
  totals_agree(run, 1);
  double computed = 0;
  for (const EngineTotals& t : run.outcome.engine_total) computed += t.prefill_tokens;
  BOOST_TEST(computed < 6400 + 300);          // the prompt once, and what the user had of the answer
}

BOOST_AUTO_TEST_CASE(requests_wait_for_the_only_engine_to_come_back_and_are_lost_when_it_does_not) {
  for (const bool spare : {true, false}) {
    SimulationOptions options = two_and_two();
    options.pools[0].engines = 1;
    options.failures.spare_gpus = spare ? 1 : 0;
    options.failures.sources = {at(FailureKind::gpu, 0, 1.0)};
    Scripted load(many(60));
    const Run run = simulate(options, load);
    totals_agree(run, 60);
    BOOST_TEST(run.outcome.unfinished_measured == 0U);
    BOOST_TEST((run.outcome.lost_measured > 0U) == !spare);
    BOOST_TEST((run.outcome.failures.at(0).back_s > 0) == spare);
  }
}

BOOST_AUTO_TEST_CASE(users_who_ask_again_at_once_when_no_engine_is_left_end_the_run_with_an_error) {
  SimulationOptions options = two_and_two();
  options.pools[0].engines = 1;
  options.failures.sources = {at(FailureKind::gpu, 0, 1.0)};
  options.failures.in_flight = InFlightPolicy::lose;
  options.duration_s = 10;
  const auto load = make_closed_loop({.users = 4, .lengths = {.input_tokens = 100, .output_tokens = 10}});
  BOOST_CHECK_THROW(simulate(options, *load), BoundMissed);
}

BOOST_AUTO_TEST_CASE(computed_prompts_without_a_decode_engine_left_are_lost) {
  SimulationOptions options = two_and_two();
  options.pools[1].engines = 1;
  options.failures.sources = {at(FailureKind::gpu, 2, 1.0)};
  Scripted load(many(60));
  const Run run = simulate(options, load);
  totals_agree(run, 60);
  BOOST_TEST(run.outcome.unfinished_measured == 0U);
  BOOST_TEST(run.outcome.lost_measured > 0U);
}

BOOST_AUTO_TEST_CASE(a_straggler_slows_the_steps_of_its_whole_engine_while_it_lasts) {
  SimulationOptions options;
  const LinearSteps steps(0.01, 0, 0);
  options.pools = {pool(EngineRole::aggregated, 1, 4, steps)};
  FailureSource slow = at(FailureKind::straggler, 0, 1.0);
  slow.share = 0.5;
  slow.lasts_s = 2;
  options.failures.sources = {slow};
  Scripted load({{0, 100, 1001}});
  const Run run = simulate(options, load);
  // 10 s of steps; 2 s of them at half speed give 1 s of work.
  BOOST_TEST(run.records.rows.at(0).finish_s == 11.01, tt::tolerance(0.002));
}

BOOST_AUTO_TEST_CASE(the_same_failures_give_the_same_bytes) {
  const auto once = [] {
    SimulationOptions options = two_and_two();
    FailureSource source = at(FailureKind::engine, 2, -1);
    source.engines = 2;
    source.every_s = 3;
    source.down_s = 1;
    options.failures.sources = {source};
    options.duration_s = 15;
    Scripted load(many(200));
    std::vector<double> ends;
    for (const RequestRecord& row : simulate(options, load).records.rows) ends.push_back(row.finish_s);
    return ends;
  };
  BOOST_TEST(once() == once());
}

BOOST_AUTO_TEST_CASE(goodput_lost_and_time_to_recover_are_read_off_the_rate) {
  Goodput goodput;
  for (int t = 0; t < 600; ++t) goodput.add(t + 0.5, t < 300 ? 100 : t < 340 ? 0 : 100);
  const Goodput::Loss loss = goodput.loss(300, 600);
  BOOST_TEST(loss.before_tok_s == 100, tt::tolerance(1e-9));
  BOOST_TEST(loss.lowest_tok_s == 0);
  BOOST_TEST(loss.lost_tokens == 4000, tt::tolerance(0.01));
  BOOST_TEST(loss.recovered_s == 40 + 29, tt::tolerance(0.02));   // 95% of a mean of 30 s
  Goodput dead;
  for (int t = 0; t < 600; ++t) dead.add(t + 0.5, t < 300 ? 100 : 0);
  BOOST_TEST(dead.loss(300, 600).recovered_s == -1);
  BOOST_TEST(dead.loss(300, 600).lost_tokens == 30000, tt::tolerance(0.01));
}
