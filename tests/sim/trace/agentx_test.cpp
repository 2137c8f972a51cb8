#define BOOST_TEST_MODULE agentx
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>
#include <queue>
#include <set>

#include "sim/base/error.hpp"
#include "sim/base/numpy_random.hpp"
#include "sim/trace/agentx.hpp"
#include "sim/trace/generate.hpp"
#include "sim/trace/ideal_cache.hpp"
#include "sim/trace/load_shape.hpp"
#include "sim/trace/read.hpp"
#include "sim/trace/runs.hpp"
#include "sim/trace/session_demand.hpp"
#include "sim/trace/statistics.hpp"
#include "tests/support/recorded_data.hpp"

using namespace rackcast;

namespace {

// Serves every request in a fixed or drawn time, without limit of capacity.
class Server {
 public:
  explicit Server(Load& load, double service_s) : load_(load), service_s_(service_s) {}

  // Runs until `until` says stop or nothing more can happen; on_start sees each request and its start.
  template <class OnStart, class Until>
  void run(OnStart on_start, Until until) {
    std::vector<LoadRequest> due;
    while (!until()) {
      const double next_s = std::min(load_.next_time_s(), ends_.empty() ? never_s : ends_.top().first);
      if (next_s == never_s) return;
      BOOST_REQUIRE(next_s >= now_s);
      now_s = next_s;
      while (!ends_.empty() && ends_.top().first <= now_s) {
        const std::uint64_t id = ends_.top().second;
        ends_.pop();
        load_.finished(id, now_s);
      }
      due.clear();
      load_.take_due(now_s, due);
      for (const LoadRequest& request : due) {
        on_start(request, now_s);
        ends_.push({now_s + (service_s_ >= 0 ? service_s_ : random_.uniform(0.1, 20)), request.id});
      }
    }
  }
  std::size_t in_flight() const { return ends_.size(); }
  double now_s = 0;

 private:
  using End = std::pair<double, std::uint64_t>;
  Load& load_;
  double service_s_;
  NumpyRandom random_{3};
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

constexpr std::uint32_t lanes_none = 0xFFFF'FFFF;

std::string request(double t, int blocks, double api_s, int first = 1) {
  return R"({"t":)" + std::to_string(t) + R"(,"type":"n","model":"m","in":)" + std::to_string(64 * blocks) + R"(,"out":7,"api_time":)" +
         std::to_string(api_s) + R"(,"hash_runs":[[)" + std::to_string(first) + "," + std::to_string(blocks) + "]]}";
}
std::string group(double t, double duration_s, const std::string& requests) {
  return R"({"t":)" + std::to_string(t) + R"(,"type":"subagent","duration_ms":)" + std::to_string(1000 * duration_s) + R"(,"requests":[)" + requests + "]}";
}
Trace trace_of(const std::string& requests) { return read_trace_text("t", R"({"id":"s","block_size":64,"requests":[)" + requests + "]}"); }

struct Start {
  double time_s;
  std::uint32_t stream, input_tokens, output_tokens, play;
  LoadPhase phase;
};
// The starts of the first plays from turn 0, with a fixed service time.
std::vector<Start> replay(const Trace& trace, double service_s, AgentxOptions options = {}, std::size_t count = 1000) {
  options.trace = &trace;
  options.start_min = options.start_max = 0;
  options.warmup_requests = 0;
  auto load = make_agentx(options);
  std::vector<Start> starts;
  Server server(*load, service_s);
  server.run([&](const LoadRequest& r, double now) { starts.push_back({now, r.stream, r.input_tokens, r.output_tokens, r.play, r.phase}); },
             [&] { return starts.size() >= count; });
  return starts;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_gap_counts_from_the_live_end_of_the_previous_call) {
  // Recorded: 0 to 2, then at 10 (8 s later) to 15, then at 12, which overlaps and becomes no gap.
  const Trace trace = trace_of(request(0, 1, 2) + "," + request(10, 2, 5) + "," + request(15, 3, 1));
  const auto starts = replay(trace, 1, {}, 4);
  BOOST_TEST(starts[0].time_s == 0);
  BOOST_TEST(starts[1].time_s == 1 + 8);
  BOOST_TEST(starts[2].time_s == 10 + 0);
  BOOST_TEST(starts[3].time_s == 11);      // the next play begins at once, at turn 0
  BOOST_TEST(starts[3].play != starts[2].play);
  BOOST_TEST(starts[3].input_tokens == 64u);
}

BOOST_AUTO_TEST_CASE(a_slow_server_stretches_the_session_but_not_the_think_time) {
  const Trace trace = trace_of(request(0, 1, 2) + "," + request(10, 2, 5));
  BOOST_TEST(replay(trace, 100, {}, 2)[1].time_s == 100 + 8);
}

BOOST_AUTO_TEST_CASE(a_subagent_starts_at_its_offset_and_the_turn_after_its_end_waits_for_it) {
  // The group starts 1 s after the first turn returned, its first call 2 s after that; it ends at 40. Turn 2 (at 20) does
  // not wait, turn 3 (at 50) does.
  const Trace trace = trace_of(request(0, 1, 2) + "," + group(3, 37, request(2, 4, 3, 100)) + "," + request(20, 2, 1) + "," + request(50, 3, 1));
  const auto starts = replay(trace, 1, {.tree_idle_cap_s = 0, .system_idle_cap_s = 0}, 4);
  BOOST_TEST(starts[1].stream == 1u);
  BOOST_TEST(starts[1].time_s == 1 + 2);          // end of turn 1 + offset in the group
  BOOST_TEST(starts[2].time_s == 1 + 18);         // end of turn 1 + its own gap
  BOOST_TEST(starts[3].time_s == 20 + 29);
  // With slow calls the join decides: turn 3 waits for the subagent.
  const auto slow = replay(trace, 30, {.tree_idle_cap_s = 0, .system_idle_cap_s = 0}, 4);
  BOOST_TEST(slow[1].time_s == 32);
  BOOST_TEST(slow[2].time_s == 48);
  BOOST_TEST(slow[3].time_s == 78 + 29);
}

BOOST_AUTO_TEST_CASE(a_subagent_that_overlapped_its_parent_call_starts_from_the_parents_start) {
  const Trace trace = trace_of(request(0, 1, 10) + "," + group(4, 4, request(0, 4, 3, 100)) + "," + request(20, 2, 1));
  const auto starts = replay(trace, 6, {.tree_idle_cap_s = 0, .system_idle_cap_s = 0}, 3);
  BOOST_TEST(starts[1].stream == 1u);
  BOOST_TEST(starts[1].time_s == 4);
  BOOST_TEST(starts[2].time_s == 6 + 10);
}

BOOST_AUTO_TEST_CASE(a_background_subagent_holds_the_lane_until_it_ends) {
  const Trace trace = trace_of(request(0, 1, 2) + "," + group(3, 500, request(0, 4, 3, 100)));
  const auto starts = replay(trace, 50, {.tree_idle_cap_s = 0, .system_idle_cap_s = 0}, 3);
  BOOST_TEST(starts[1].time_s == 50);
  BOOST_TEST(starts[2].play == starts[0].play + 1);
  BOOST_TEST(starts[2].time_s == 100);
}

BOOST_AUTO_TEST_CASE(an_idle_tree_waits_at_most_its_cap_and_keeps_its_spacing) {
  const Trace trace = trace_of(request(0, 1, 1) + "," + request(5001, 2, 1) + "," + request(5012, 3, 1));
  const auto starts = replay(trace, 1, {.tree_idle_cap_s = 300, .system_idle_cap_s = 0}, 3);
  BOOST_TEST(starts[1].time_s == 1 + 300);
  BOOST_TEST(starts[2].time_s == 302 + 10);
  BOOST_TEST(replay(trace, 1, {.tree_idle_cap_s = 0, .system_idle_cap_s = 0}, 2)[1].time_s == 1 + 5000);
}

BOOST_AUTO_TEST_CASE(an_idle_system_moves_all_timers_by_one_shift) {
  // Two lanes with the same session; lane 1 is one second behind, and stays so.
  const Trace trace = trace_of(request(0, 1, 1) + "," + request(101, 2, 1));
  auto load = make_agentx({.trace = &trace, .lanes = 2, .start_min = 0, .start_max = 0, .warmup_requests = 0, .tree_idle_cap_s = 0});
  std::vector<LoadRequest> due;
  load->take_due(0, due);
  BOOST_REQUIRE(due.size() == 2u);
  load->finished(due[0].id, 1);
  BOOST_TEST(load->next_time_s() == 101);  // the other one is in flight: no guard
  load->finished(due[1].id, 2);
  BOOST_TEST(load->next_time_s() == 12);
  due.clear();
  load->take_due(12, due);
  BOOST_TEST(due.size() == 1u);
  BOOST_TEST(load->next_time_s() == 13);
}

BOOST_AUTO_TEST_CASE(the_warm_up_primes_live_streams_sends_its_requests_and_then_spreads_the_lanes) {
  std::string requests;
  for (int i = 0; i < 40; ++i) requests += (i ? "," : "") + request(100 * i, i + 1, 10);
  const Trace trace = trace_of(requests);
  auto load = make_agentx({.trace = &trace, .lanes = 3, .warmup_requests = 5});
  std::map<LoadPhase, int> count;
  std::map<std::uint32_t, std::vector<LoadRequest>> by_lane;
  double measured_from_s = -1;
  Server server(*load, 2);
  server.run(
      [&](const LoadRequest& r, double now) {
        ++count[r.phase];
        by_lane[r.lane].push_back(r);
        if (r.phase != LoadPhase::measured) BOOST_TEST(r.output_tokens == 1u);
        else if (measured_from_s < 0) measured_from_s = now;
      },
      [&] { return count[LoadPhase::measured] == 3; });
  BOOST_TEST(count[LoadPhase::primer] == 3);
  BOOST_TEST(count[LoadPhase::warmup] == 15);
  BOOST_TEST(measured_from_s == 2 + 5 * 2);  // primers, then five requests end to end, no gaps
  for (const auto& [lane, sent] : by_lane) {
    BOOST_TEST(sent[0].input_tokens >= 64u * 10);  // a quarter into the session
    BOOST_TEST(sent[0].input_tokens <= 64u * 30);
    for (std::size_t i = 1; i < 7; ++i) BOOST_TEST(sent[i].input_tokens == sent[i - 1].input_tokens + 64);
    BOOST_TEST(sent[0].ideal_cached_blocks == 0u);
    BOOST_TEST(sent[1].ideal_cached_blocks * 64 == sent[0].input_tokens);
  }
}

BOOST_AUTO_TEST_CASE(preload_leaves_the_load_where_an_instant_warm_up_would) {
  std::string requests;
  for (int i = 0; i < 60; ++i) requests += (i ? "," : "") + request(100 * i + i * i, i + 1, 10);
  const Trace trace = trace_of(requests);
  const AgentxOptions options{.trace = &trace, .lanes = 50};
  auto preloaded = make_agentx(options), replayed = make_agentx(options);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> warmed, served;
  preloaded->preload([&](const LoadRequest& r) { warmed.emplace_back(r.lane, r.input_tokens); });
  BOOST_CHECK(preloaded->phase() == LoadPhase::measured);
  std::vector<LoadRequest> first;
  preloaded->take_due(preloaded->next_time_s(), first);
  std::uint32_t first_lane = lanes_none;
  Server server(*replayed, 0);
  server.run(
      [&](const LoadRequest& r, double) {
        if (r.phase == LoadPhase::measured) first_lane = std::min(first_lane, r.lane);
        else served.emplace_back(r.lane, r.input_tokens);
      },
      [&] { return first_lane != lanes_none; });
  std::sort(warmed.begin(), warmed.end());  // within one instant the server ends calls in an order of its own
  std::sort(served.begin(), served.end());
  BOOST_TEST(warmed.size() == 50u * 11);
  BOOST_TEST((warmed == served));
  BOOST_TEST(first.at(0).lane == first_lane);
}

BOOST_AUTO_TEST_CASE(a_replay_with_an_infinite_cache_reproduces_the_ideal_hit_exactly) {
  const auto data = test_support::recorded_data("traces/kv-cache-tester/weka_rle.jsonl.gz");
  if (!data) return;
  const Trace trace = read_trace({*data});
  const auto lanes = static_cast<std::uint32_t>(trace.sessions.size());
  auto load = make_agentx({.trace = &trace, .lanes = lanes, .start_min = 0, .start_max = 0, .warmup_requests = 0,
                           .tree_idle_cap_s = 0, .system_idle_cap_s = 0});
  std::uint64_t held = 0, blocks = 0, requests = 0;
  std::vector<IdealCache> caches(lanes);
  Server server(*load, -1);
  server.run(
      [&](const LoadRequest& r, double) {
        if (r.play >= lanes) return;  // second plays
        ++requests;
        held += r.ideal_cached_blocks;
        blocks += block_count(r.runs);
        BOOST_REQUIRE(caches[r.play].add(r.runs) == r.ideal_cached_blocks);
      },
      [&] { return requests == trace.requests.size(); });
  BOOST_TEST(requests == trace.requests.size());
  BOOST_TEST(static_cast<double>(held) / static_cast<double>(blocks) == statistics_of(trace).hit_ideal);
}

BOOST_AUTO_TEST_CASE(every_request_starts_after_what_it_must_wait_for) {
  const auto data = test_support::recorded_data("traces/kv-cache-tester/weka_rle.jsonl.gz");
  if (!data) return;
  const Trace trace = read_trace({*data});
  for (const Session& session : trace.sessions) {
    if (session.groups_count == 0) continue;
    Trace one = trace;
    one.sessions = {session};
    auto load = make_agentx({.trace = &one, .start_min = 0, .start_max = 0, .warmup_requests = 0});
    const SessionPlan plan(one, one.sessions[0]);
    std::vector<std::uint32_t> given(plan.streams().size(), 0);
    std::set<std::uint32_t> finished, started;
    std::map<std::uint64_t, std::uint32_t> node_of;
    std::vector<LoadRequest> due;
    NumpyRandom random(5);
    double now_s = 0;
    while (started.size() < plan.nodes().size()) {
      due.clear();
      const bool finish_one = !node_of.empty() && (random.below(2) == 0 || load->next_time_s() == never_s);
      if (finish_one) {
        const auto pick = std::next(node_of.begin(), static_cast<long>(random.below(node_of.size())));
        finished.insert(pick->second);
        const std::uint64_t id = pick->first;
        node_of.erase(pick);
        load->finished(id, now_s);
        continue;
      }
      now_s = load->next_time_s();
      load->take_due(now_s, due);
      for (const LoadRequest& r : due) {
        const PlanStream& stream = plan.streams()[r.stream];
        const std::uint32_t node = stream.first + given[r.stream]++;
        BOOST_REQUIRE(plan.nodes()[node].stream == r.stream);
        for (const std::uint32_t other : plan.waits(plan.nodes()[node])) BOOST_REQUIRE(finished.count(other));
        if (node > stream.first) BOOST_REQUIRE(finished.count(node - 1));
        else if (stream.spawn != no_node) BOOST_REQUIRE((stream.at_issue ? started : finished).count(stream.spawn));
        if (r.stream == 0)
          for (const std::uint32_t child : plan.joined_by(node))
            BOOST_REQUIRE(finished.count(plan.streams()[child].first + plan.streams()[child].count - 1));
        started.insert(node);
        node_of[r.id] = node;
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_recorded_sessions_ask_for_3_to_4_thousand_tokens_per_lane_second) {
  const auto data = test_support::recorded_data("traces/kv-cache-tester/weka_rle.jsonl.gz");
  if (!data) return;
  const Trace trace = read_trace({*data});
  const LaneDemand demand = lane_demand({.trace = &trace, .lanes = 3072}, 1800);
  BOOST_TEST(demand.tokens_per_s / 3072 > 3000);
  BOOST_TEST(demand.tokens_per_s / 3072 < 4000);
}

// Long sessions ask for more, and a window in which every lane starts in another session counts each session alike.
BOOST_AUTO_TEST_CASE(generated_sessions_ask_for_9_to_13_thousand_tokens_per_lane_second_over_their_whole_length) {
  const Trace trace = generate_trace(agentx_v1_shape(), 1);
  const auto plans = session_plans(trace);
  const SessionDemand whole = session_demand(trace, *plans, 300);
  BOOST_TEST(whole.tokens_per_s > 9000);
  BOOST_TEST(whole.tokens_per_s < 13000);
  const LaneDemand window = lane_demand({.trace = &trace, .plans = plans, .lanes = 3072}, 1800);
  BOOST_TEST(window.tokens_per_s / 3072 < whole.tokens_per_s);
}

// One session pauses for 100 s, a second one for 4,000 s, which the guard cuts to 300 s.
BOOST_AUTO_TEST_CASE(lanes_that_hardly_pause_ask_for_much_and_the_estimate_ends) {
  const Trace trace = generate_trace(agentx_v1_shape(), 1);
  const auto demand = [&](double cap_s) { return lane_demand({.trace = &trace, .lanes = 8, .tree_idle_cap_s = cap_s}, 3600).tokens_per_s; };
  const double hardly = demand(1e-9);
  BOOST_TEST((hardly > 1000 * demand(300) && std::isfinite(hardly)));
  BOOST_TEST(std::isinf(demand(1e-300)));  // time stands still
}

BOOST_AUTO_TEST_CASE(a_sessions_demand_is_its_tokens_over_its_pauses) {
  const auto session = [](const std::string& id, const std::string& requests) { return R"({"id":")" + id + R"(","block_size":64,"requests":[)" + requests + "]}\n"; };
  const Trace trace = read_trace_text("t", session("a", request(0, 10, 5) + "," + request(105, 12, 1)) + session("b", request(0, 3, 1) + "," + request(4001, 4, 1)));
  const SessionDemand demand = session_demand(trace, *session_plans(trace), 300);
  BOOST_TEST(demand.lane_s == 400.0);
  BOOST_TEST(demand.tokens_per_s == (29 * 64 + 4 * 7) / 400.0);
  BOOST_TEST(demand.requests_per_hour == 36.0);
}

BOOST_AUTO_TEST_CASE(a_stopped_load_gives_nothing_more) {
  const Trace trace = trace_of(request(0, 1, 1));
  auto load = make_agentx({.trace = &trace});
  load->stop();
  BOOST_TEST(load->next_time_s() == never_s);
  BOOST_TEST(load->exhausted());
}

BOOST_AUTO_TEST_CASE(a_trace_without_main_requests_is_refused) {
  const Trace trace = trace_of("");
  BOOST_CHECK_THROW(make_agentx({.trace = &trace}), UserError);
  const Trace arrivals = read_trace_text("m", R"({"timestamp":0,"input_length":512,"output_length":1,"hash_ids":[1]})");
  BOOST_CHECK_THROW(make_agentx({.trace = &arrivals}), UserError);
}
