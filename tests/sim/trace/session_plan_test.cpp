#define BOOST_TEST_MODULE session_plan
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include "sim/trace/read.hpp"
#include "sim/trace/session_plan.hpp"
#include "sim/trace/statistics.hpp"

using namespace rackcast;

namespace {

std::string call(double t, double api_s, int first, int blocks) {
  return fmt::format(R"({{"t":{},"type":"n","model":"m","in":{},"out":9,"api_time":{},"hash_runs":[[{},{}]]}})", t, 64 * blocks, api_s, first, blocks);
}
std::string group(double t, double seconds, const std::string& calls) {
  return fmt::format(R"({{"t":{},"type":"subagent","duration_ms":{},"requests":[{}]}})", t, 1000 * seconds, calls);
}
Trace trace_of(const std::string& requests) { return read_trace_text("t", R"({"id":"s","block_size":64,"requests":[)" + requests + "]}"); }

}  // namespace

BOOST_AUTO_TEST_CASE(groups_hang_between_the_turn_before_and_the_first_turn_after_their_end) {
  const Trace trace = trace_of(call(0, 2, 1, 3) + "," + group(10, 15, call(0, 5, 100, 4)) + "," + call(20, 1, 1, 4) + "," + call(25, 1, 1, 5));
  const SessionPlan plan(trace, trace.sessions[0]);
  BOOST_REQUIRE(plan.streams().size() == 2u);
  const PlanStream& child = plan.streams()[1];
  BOOST_TEST(child.spawn == 0u);
  BOOST_TEST(child.join == 2u);  // the turn at 20 began before the group's end at 25
  BOOST_TEST(!child.at_issue);
  BOOST_TEST(plan.nodes()[child.first].delay_s == 0);
  BOOST_TEST(plan.spawned_by(0).size() == 1u);
  BOOST_TEST(plan.joined_by(2).size() == 1u);
  BOOST_TEST(plan.joined_by(1).empty());
}

BOOST_AUTO_TEST_CASE(two_groups_with_different_ends_gate_different_turns) {
  const Trace trace = trace_of(call(0, 2, 1, 3) + "," + group(10, 5, call(0, 5, 100, 4)) + "," + group(11, 30, call(0, 5, 200, 4)) + "," +
                               call(20, 1, 1, 4) + "," + call(60, 1, 1, 5));
  const SessionPlan plan(trace, trace.sessions[0]);
  BOOST_TEST(plan.streams()[1].join == 1u);
  BOOST_TEST(plan.streams()[2].join == 2u);
}

BOOST_AUTO_TEST_CASE(groups_of_one_branch_keep_their_offsets_from_its_start) {
  const Trace trace = trace_of(call(0, 2, 1, 3) + "," + group(10, 30, call(0, 5, 100, 4)) + "," + group(14, 20, call(1, 5, 200, 4)) + "," + call(60, 1, 1, 4));
  const SessionPlan plan(trace, trace.sessions[0]);
  BOOST_TEST(plan.nodes()[plan.streams()[1].first].delay_s == 0);
  BOOST_TEST(plan.nodes()[plan.streams()[2].first].delay_s == 5);
}

BOOST_AUTO_TEST_CASE(a_group_before_any_turn_is_dropped_and_one_after_the_last_runs_in_the_background) {
  const Trace trace = trace_of(group(0, 1, call(0, 1, 100, 4)) + "," + call(5, 2, 1, 3) + "," + group(10, 15, call(0, 5, 200, 4)));
  const SessionPlan plan(trace, trace.sessions[0]);
  BOOST_REQUIRE(plan.streams().size() == 2u);
  BOOST_TEST(plan.streams()[1].join == no_node);
}

BOOST_AUTO_TEST_CASE(undeclared_chains_of_a_group_wait_for_each_other_only_within_it) {
  // Inside the group: a chain of two calls and a call of its own beside the first.
  const std::string inner = call(0, 4, 100, 4) + "," + call(1, 2, 300, 2) + "," + call(6, 1, 100, 6);
  const Trace trace = trace_of(call(0, 2, 1, 3) + "," + group(10, 15, inner) + "," + call(40, 1, 1, 4));
  const SessionPlan plan(trace, trace.sessions[0]);
  BOOST_REQUIRE(plan.streams().size() == 3u);
  BOOST_CHECK(plan.streams()[1].role == StreamRole::subagent);
  BOOST_CHECK(plan.streams()[2].role == StreamRole::sibling);
  const PlanNode& second = plan.nodes()[plan.streams()[1].first + 1];
  BOOST_REQUIRE(second.waits_count == 1u);
  BOOST_TEST(plan.waits(second)[0] == plan.streams()[2].first);
  BOOST_TEST(plan.nodes()[1].waits_count == 0u);  // the root waits for groups by joins alone
}

BOOST_AUTO_TEST_CASE(a_record_whose_waits_would_close_a_circle_loses_its_barriers) {
  // The file is out of order: the call at 20 stands behind the turn at 50, so that turn spawns it, and waits for it.
  const Trace trace = trace_of(call(0, 2, 1, 3) + "," + call(10, 1, 1, 4) + "," + call(50, 1, 1, 5) + "," + call(20, 1, 300, 2) + "," + call(60, 1, 1, 6));
  const SessionPlan plan(trace, trace.sessions[0]);
  BOOST_REQUIRE(plan.streams().size() == 2u);
  BOOST_TEST(plan.streams()[1].spawn == 2u);
  // Every node can be reached: walk in any order that the rules allow.
  std::vector<std::uint32_t> done(plan.streams().size(), 0);
  std::size_t reached = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t s = 0; s < plan.streams().size(); ++s) {
      const PlanStream& stream = plan.streams()[s];
      if (done[s] == stream.count || (s > 0 && done[0] <= stream.spawn)) continue;
      const std::uint32_t node = stream.first + done[s];
      bool blocked = false;
      for (const std::uint32_t other : plan.waits(plan.nodes()[node])) {
        const std::uint32_t of = plan.nodes()[other].stream;
        blocked |= done[of] <= other - plan.streams()[of].first;
      }
      if (s == 0)
        for (const std::uint32_t child : plan.joined_by(node)) blocked |= done[child] < plan.streams()[child].count;
      if (blocked) continue;
      ++done[s];
      ++reached;
      moved = true;
    }
  }
  BOOST_TEST(reached == plan.nodes().size());
}

BOOST_AUTO_TEST_CASE(segments_are_what_requests_take_whole) {
  const Trace trace = trace_of(call(0, 1, 1, 3) + "," + call(5, 1, 1, 7) + "," + call(10, 1, 2, 4));
  const SessionPlan plan(trace, trace.sessions[0]);
  const auto range = plan.segments(trace.requests[1])[0];
  std::vector<std::uint32_t> starts;
  for (std::uint32_t s = range.begin; s < range.end; ++s) starts.push_back(plan.segment_start(s));
  BOOST_TEST((starts == std::vector<std::uint32_t>{1, 2, 4, 6}));
}
