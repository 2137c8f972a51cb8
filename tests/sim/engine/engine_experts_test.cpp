// Expert placement inside a run: what stalls, what does not, and that nothing is lost on the way.
#define BOOST_TEST_MODULE engine_experts
#include "sim/engine/engine_experts.hpp"

#include <boost/test/unit_test.hpp>

#include "sim/policy/eplb.hpp"
#include "tests/support/small_rack.hpp"

using namespace rackcast;
using namespace rackcast::test;

namespace {

constexpr std::uint32_t ranks = 8;

// A step that lasts as long as the rows of the busiest rank say.
struct ExpertSteps final : StepModel {
  StepTime step(std::span<const RankBatch> batch, const ExpertLoad& load) const override {
    double tokens = 0;
    for (const RankBatch& rank : batch) tokens += rank.prefill_tokens + rank.decode_tokens;
    StepTime time;
    const double rows = load.main ? load.main->at(tokens).mean.rows : 1;
    time.total_s = time.moe_s = 1e-3 * rows / (1 - load.link_taken);
    return time;
  }
  std::vector<OperatorCost> operators(std::span<const RankBatch>, const ExpertLoad&) const override { return {}; }
};

SimulationOptions world(const StepModel& model, EplbPolicy policy) {
  SimulationOptions o;
  o.pools = {pool(EngineRole::aggregated, 1, ranks, model)};
  o.duration_s = never_s;
  o.experts.eplb.policy = policy;
  o.experts.eplb.redundant_experts = 8;
  o.experts.eplb.draft_redundant_experts = 8;
  o.experts.eplb.window = 200;
  o.experts.eplb.interval = 800;
  const ExpertPopularityOptions popularity{.skew = ExpertSkew::zipf, .exponent = 1.0};
  o.experts.parts = {{"main", popularity, 12, 64, 4, 20e6}, {"draft", popularity, 3, 32, 2, 20e6}};
  return o;
}

Run played(EplbPolicy policy) {
  const ExpertSteps model;
  std::vector<Scripted::Ask> asks;
  for (int i = 0; i < 64; ++i) asks.push_back({0.0, 100, 3000});
  Scripted load(asks);
  return simulate(world(model, policy), load);
}

double stalled_s(const Run& run) { return run.outcome.eplb_stall_s[0]; }

}  // namespace

BOOST_AUTO_TEST_CASE(every_policy_serves_every_request_and_balancing_ones_serve_them_sooner) {
  const double none_s = played(EplbPolicy::none).outcome.end_s;
  for (const EplbPolicy policy : {EplbPolicy::static_placement, EplbPolicy::periodic_sync, EplbPolicy::periodic_async, EplbPolicy::oracle,
                                  EplbPolicy::random_replicas}) {
    const Run run = played(policy);
    BOOST_TEST(run.records.rows.size() == 64U);
    if (policy != EplbPolicy::random_replicas) BOOST_TEST(run.outcome.end_s < none_s);
  }
  BOOST_TEST(played(EplbPolicy::oracle).outcome.end_s <= played(EplbPolicy::static_placement).outcome.end_s);
}

BOOST_AUTO_TEST_CASE(a_synchronous_rearrangement_stalls_for_host_and_bytes_and_an_asynchronous_one_does_not) {
  const Run sync = played(EplbPolicy::periodic_sync), async = played(EplbPolicy::periodic_async);
  const ExpertPartTotals main = sync.outcome.experts[0]->totals(0), draft = sync.outcome.experts[0]->totals(1);
  BOOST_TEST(main.rearrangements == 4U);  // steps 200, 1,000, 1,800 and 2,600 of 3,000
  BOOST_TEST(main.moved_bytes == main.moved_experts * 20e6);
  BOOST_TEST(main.moved_bytes > 0);
  BOOST_TEST(stalled_s(sync) == main.rearranging_s + draft.rearranging_s, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(stalled_s(sync) > 4 * 15 * 8e-3);  // 12 + 3 layers of host time each
  BOOST_TEST(stalled_s(async) == 0);
  BOOST_TEST(async.outcome.experts[0]->totals(0).rearranging_s > 4 * 12 * 8e-3);
  BOOST_TEST(async.outcome.engine_total[0].eplb_slowdown_s > 0);
  BOOST_TEST(sync.outcome.engine_total[0].eplb_slowdown_s == 0);
  BOOST_TEST(main.imbalance_after < 0.5 * main.imbalance_before);
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_run) {
  const Run a = played(EplbPolicy::periodic_async), b = played(EplbPolicy::periodic_async);
  BOOST_TEST(a.outcome.end_s == b.outcome.end_s);
  BOOST_TEST(a.outcome.flows == b.outcome.flows);
}

BOOST_AUTO_TEST_CASE(popularity_that_drifts_away_makes_a_static_placement_worse_than_a_periodic_one) {
  const ExpertPopularityOptions popularity{.skew = ExpertSkew::zipf, .exponent = 0.6, .drift = 0.8, .drift_time_s = 100};
  const auto rows_after = [&](EplbPolicy policy) {
    ExpertOptions o;
    o.parts = {{"main", popularity, 8, 64, 4, 1e6}};
    o.eplb.policy = policy;
    o.eplb.redundant_experts = 8;
    o.eplb.window = o.eplb.interval = 20;
    EngineExperts experts(o, make_popularities(o, 3), 8, 1, 5);
    double rows = 0;
    const std::vector<double> topics(experts.topics(), 1024);
    for (int step = 0; step < 2000; ++step) {
      ExpertLoad load = experts.begin_step(step * 0.5, 4096, topics);
      if (step >= 1000) rows += load.main->at(4096).mean.rows / 1000;
      if (!experts.due()) continue;
      experts.start(step * 0.5);
      while (experts.finish_stage(step * 0.5)) {}
    }
    return rows;
  };
  BOOST_TEST(rows_after(EplbPolicy::periodic_sync) < 0.8 * rows_after(EplbPolicy::static_placement));
}

BOOST_AUTO_TEST_CASE(sessions_spread_over_the_topics_whether_lanes_or_plays_tell_them_apart) {
  for (const std::uint64_t seed : {1U, 42U})
    for (const bool by_lane : {true, false}) {
      std::vector<int> sessions(4, 0);
      int changes = 0;
      for (std::uint32_t i = 0; i < 4000; ++i) {
        const auto topic = [&](std::uint32_t n) { return topic_of_session(seed, by_lane ? n : 7, by_lane ? 0 : n, 4); };
        ++sessions[topic(i)];
        changes += topic(i) != topic(i + 1);
      }
      for (const int count : sessions) BOOST_TEST(std::abs(count - 1000) < 140);  // five deviations
      BOOST_TEST(std::abs(changes - 3000) < 140);
    }
}

BOOST_AUTO_TEST_CASE(an_engine_that_died_has_its_experts_where_it_started_and_learns_anew) {
  ExpertOptions o;
  o.parts = {{"main", {.skew = ExpertSkew::zipf, .exponent = 1.0, .topics = 1, .topic_spread = 0, .drift = 0}, 8, 64, 4, 1e6}};
  o.eplb.policy = EplbPolicy::periodic_async;
  o.eplb.redundant_experts = 8;
  o.eplb.window = o.eplb.interval = 20;
  EngineExperts experts(o, make_popularities(o, 3), 8, 1, 5);
  const std::vector<double> topics{100};
  const auto busiest = [&] { return *std::max_element(experts.rank_loads().begin(), experts.rank_loads().end()); };
  const auto play = [&] {
    while (!experts.due()) experts.begin_step(0, 4096, topics);
    experts.start(0);
  };
  const double started = busiest();
  play();
  while (experts.finish_stage(1)) {}
  const double balanced = busiest(), arrived = experts.experts_arrived();
  BOOST_TEST(balanced < 1.05);
  BOOST_TEST(started > 1.2);
  BOOST_TEST(arrived > 0);
  for (int step = 0; step < 15; ++step) experts.begin_step(2, 4096, topics);
  play();
  experts.restart();  // in the midst of a rearrangement
  experts.check();
  BOOST_TEST(!experts.rearranging());
  BOOST_TEST(experts.totals(0).rearrangements == 1U);
  BOOST_TEST(experts.experts_arrived() == arrived);
  BOOST_TEST(busiest() == started);
  play();
  while (experts.finish_stage(3)) {}
  BOOST_TEST(busiest() < 1.05);
}

BOOST_AUTO_TEST_CASE(an_engine_that_dies_while_its_experts_move_serves_every_request_in_the_end) {
  const ExpertSteps model;
  for (const EplbPolicy policy : {EplbPolicy::periodic_sync, EplbPolicy::periodic_async})
    for (const double at_s : {0.3, 0.6, 0.9, 1.2}) {
      std::vector<Scripted::Ask> asks;
      for (int i = 0; i < 64; ++i) asks.push_back({0.0, 100, 3000});
      Scripted load(asks);
      SimulationOptions o = world(model, policy);
      o.failures.sources = {{.kind = FailureKind::engine, .gpus = ranks, .at_s = at_s, .down_s = 0.5}};
      o.failures.detection_s = 0.1;
      const Run run = simulate(o, load);
      BOOST_TEST(run.records.rows.size() == 64U);
      BOOST_TEST(run.outcome.lost == 0U);
      BOOST_TEST(run.outcome.failures[0].happened);
      run.outcome.experts[0]->check();
    }
}

BOOST_AUTO_TEST_CASE(requests_beyond_the_admission_limit_wait_at_the_door_or_are_turned_away) {
  const LinearSteps model(1e-3, 1e-6, 0);
  std::vector<Scripted::Ask> asks;
  for (int i = 0; i < 10; ++i) asks.push_back({0.0, 100, 50});
  SimulationOptions o;
  o.pools = {pool(EngineRole::aggregated, 1, 2, model)};
  o.duration_s = never_s;
  o.admission.requests = 4;
  Scripted waiting(asks);
  const Run waited = simulate(o, waiting);
  BOOST_TEST(waited.records.rows.size() == 10U);
  BOOST_TEST(waited.outcome.waited_at_door == 6U);
  o.admission.over_limit = OverLimit::refuse;
  Scripted refused(asks);
  const Run turned = simulate(o, refused);
  BOOST_TEST(turned.records.rows.size() == 4U);
  BOOST_TEST(turned.outcome.turned_away == 6U);
  o.admission = {.requests = 0, .queued_tokens = Tokens(120), .over_limit = OverLimit::wait};
  Scripted queued(asks);
  const Run by_tokens = simulate(o, queued);
  BOOST_TEST(by_tokens.records.rows.size() == 10U);
  BOOST_TEST(by_tokens.outcome.waited_at_door > 0U);
}
