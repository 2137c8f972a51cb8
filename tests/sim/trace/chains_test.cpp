#define BOOST_TEST_MODULE chains
#include <boost/test/unit_test.hpp>
#include <numeric>

#include "sim/trace/barriers.hpp"
#include "sim/trace/chains.hpp"
#include "sim/trace/min_tree.hpp"
#include "sim/trace/runs.hpp"

using namespace rackcast;

namespace {

// One request: start, recorded server time, runs, model, output.
struct Call {
  double start_s, api_s;
  std::vector<HashRun> runs;
  std::uint16_t model = 0;
  std::uint32_t output = 100;
};

std::vector<Chain> split(const std::vector<Call>& calls) {
  Trace trace;
  trace.models = {"a", "b"};
  trace.sessions = {{.id = "s", .requests_count = static_cast<std::uint32_t>(calls.size())}};
  for (const Call& call : calls) {
    TraceRequest request;
    request.start_s = call.start_s;
    request.api_time_s = call.api_s;
    request.output_tokens = call.output;
    request.model = call.model;
    request.runs_begin = static_cast<std::uint32_t>(trace.runs.size());
    request.runs_count = static_cast<std::uint32_t>(call.runs.size());
    trace.runs.insert(trace.runs.end(), call.runs.begin(), call.runs.end());
    trace.requests.push_back(request);
  }
  std::vector<std::uint32_t> all(calls.size());
  std::iota(all.begin(), all.end(), 0U);
  return split_chains(trace, all);
}

bool is(const std::vector<Chain>& chains, const std::vector<Chain>& expected) { return chains == expected; }

}  // namespace

BOOST_AUTO_TEST_CASE(common_prefix_looks_through_the_cut_of_runs) {
  const std::vector<HashRun> a = {{1, 10}, {50, 5}}, b = {{1, 4}, {5, 6}, {50, 2}, {99, 1}}, c = {{1, 10}, {51, 5}};
  BOOST_TEST(common_prefix(a, b) == 12u);
  BOOST_TEST(common_prefix(b, a) == 12u);
  BOOST_TEST(common_prefix(a, c) == 10u);
  BOOST_TEST(common_prefix(a, {}) == 0u);
}

BOOST_AUTO_TEST_CASE(a_request_that_holds_a_whole_ended_request_extends_its_chain) {
  BOOST_TEST(is(split({{0, 1, {{1, 5}}}, {2, 1, {{1, 7}}}, {4, 1, {{1, 9}}}}), {{0, 1, 2}}));
}

BOOST_AUTO_TEST_CASE(a_request_that_starts_before_the_tail_ended_forks) {
  // Request 1 starts while 0 runs; 2 extends 0 and 3 extends 1.
  BOOST_TEST(is(split({{0, 10, {{1, 5}}}, {2, 1, {{1, 5}, {20, 2}}}, {11, 1, {{1, 7}}}, {12, 1, {{1, 5}, {20, 4}}}}), {{0, 2}, {1, 3}}));
}

BOOST_AUTO_TEST_CASE(another_model_never_extends) {
  BOOST_TEST(is(split({{0, 1, {{1, 5}}}, {2, 1, {{1, 7}}, 1}, {4, 1, {{1, 7}}}}), {{0, 2}, {1}}));
}

BOOST_AUTO_TEST_CASE(a_rewritten_history_continues_the_chain_that_nothing_else_continues) {
  // Request 1 keeps three blocks of five; the tail of 0 is never used again.
  BOOST_TEST(is(split({{0, 1, {{1, 5}}}, {2, 1, {{1, 3}, {20, 4}}}, {4, 1, {{1, 3}, {20, 6}}}}), {{0, 1, 2}}));
}

BOOST_AUTO_TEST_CASE(the_deepest_fork_of_a_dead_tail_continues_it_and_the_others_hang_on) {
  BOOST_TEST(is(split({{0, 1, {{1, 8}}}, {2, 1, {{1, 2}, {30, 1}}}, {4, 1, {{1, 6}, {40, 1}}}}), {{0, 2}, {1}}));
}

BOOST_AUTO_TEST_CASE(after_more_than_an_hour_less_than_half_kept_is_a_new_chain) {
  const auto gap = [](double start_s, std::uint32_t kept) { return split({{0, 1, {{1, 10}}}, {start_s, 1, {{1, kept}, {20, 4}}}}); };
  BOOST_TEST(gap(3601, 4).size() == 1u);     // exactly an hour after the end
  BOOST_TEST(gap(3601.1, 4).size() == 2u);
  BOOST_TEST(gap(3601.1, 5).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_title_before_the_first_turn_stays_with_the_main_chain) {
  BOOST_TEST(is(split({{0, 1, {{90, 2}}, 0, 64}, {2, 1, {{1, 5}}}, {4, 1, {{1, 7}}}}), {{0, 1, 2}}));
  // Longer answers do so only when no block of theirs comes again.
  BOOST_TEST(is(split({{0, 1, {{90, 2}}, 0, 65}, {2, 1, {{1, 5}, {91, 1}}}, {4, 1, {{1, 5}, {91, 3}}}}), {{0}, {1, 2}}));
}

BOOST_AUTO_TEST_CASE(requests_without_blocks_ride_with_the_first_chain) {
  BOOST_TEST(is(split({{0, 1, {}}, {2, 1, {{1, 5}}}, {3, 1, {}}, {4, 1, {{1, 7}}}}), {{0, 1, 2, 3}}));
}

BOOST_AUTO_TEST_CASE(a_call_waits_for_the_latest_ended_call_of_every_other_stream_but_not_for_what_that_one_waited_for) {
  const std::vector<RecordedCall> scope = {{0, 0, 0, 4}, {1, 1, 1, 3}, {2, 2, 3.5, 5}, {3, 0, 6, 7}};
  const auto waits = start_barriers(scope);
  BOOST_TEST(waits[0].empty());
  BOOST_TEST(waits[1].empty());                                // 0 still ran
  BOOST_TEST((waits[2] == std::vector<std::uint32_t>{1}));
  BOOST_TEST((waits[3] == std::vector<std::uint32_t>{2}));     // 2 itself began after 1 ended
}

BOOST_AUTO_TEST_CASE(the_tournament_tree_finds_the_smallest_and_the_lowest_index_on_ties) {
  MinTree tree(5);
  BOOST_TEST(tree.min() == std::numeric_limits<double>::infinity());
  tree.set(3, 2);
  tree.set(4, 2);
  BOOST_TEST(tree.lowest() == 3u);
  tree.set(0, 2);
  BOOST_TEST(tree.lowest() == 0u);
  tree.set(0, 9);
  tree.set(3, 10);
  BOOST_TEST(tree.lowest() == 4u);
  MinTree one(1);
  one.set(0, 7);
  BOOST_TEST(one.min() == 7);
}
