#define BOOST_TEST_MODULE open_loop
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/trace/open_loop.hpp"

using namespace rackcast;

namespace {
Trace two_sessions() {
  Trace trace;
  trace.runs = {{1, 4}, {1, 6}, {1, 3}};
  const auto request = [](double start_s, std::uint32_t runs_begin, std::uint32_t blocks) {
    return TraceRequest{.start_s = start_s, .input_tokens = 64 * blocks, .output_tokens = 9, .runs_begin = runs_begin, .runs_count = 1};
  };
  trace.requests = {request(1, 0, 4), request(5, 1, 6), request(2, 2, 3)};
  trace.sessions = {{.id = "a", .requests_begin = 0, .requests_count = 2}, {.id = "b", .requests_begin = 2, .requests_count = 1}};
  return trace;
}
std::vector<LoadRequest> take(Load& load, double now_s) {
  std::vector<LoadRequest> out;
  load.take_due(now_s, out);
  return out;
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_trace_arrives_at_its_recorded_times_whatever_completes) {
  const Trace trace = two_sessions();
  auto load = make_open_loop({.trace = &trace});
  BOOST_TEST(load->next_time_s() == 1);
  const auto requests = take(*load, 2);
  BOOST_REQUIRE(requests.size() == 2u);
  BOOST_TEST(requests[0].play != requests[1].play);  // ids are local to a session
  BOOST_TEST(load->next_time_s() == 5);
  const auto last = take(*load, 5);
  BOOST_TEST(last.at(0).ideal_cached_blocks == 4u);
  BOOST_TEST(load->exhausted());
}

BOOST_AUTO_TEST_CASE(ids_of_a_global_trace_share_one_cache_identity) {
  Trace trace = two_sessions();
  trace.block_ids_global = true;
  auto load = make_open_loop({.trace = &trace});
  const auto requests = take(*load, 9);
  BOOST_TEST(requests.at(0).play == requests.at(1).play);
  BOOST_TEST(requests.at(1).ideal_cached_blocks == 3u);
}

BOOST_AUTO_TEST_CASE(poisson_arrivals_have_exponential_gaps_of_the_asked_rate) {
  auto load = make_open_loop({.rate_per_s = 20, .lengths = {.input_tokens = 1024, .output_tokens = 256}, .requests = 20000});
  double sum = 0, squares = 0, last = 0;
  while (!load->exhausted()) {
    const double due_s = load->next_time_s();
    BOOST_TEST(take(*load, due_s).size() == 1u);
    sum += due_s - last;
    squares += (due_s - last) * (due_s - last);
    last = due_s;
  }
  const double mean = sum / 20000;
  BOOST_TEST(mean == 0.05, boost::test_tools::tolerance(0.03));                     // four standard errors
  BOOST_TEST(squares / 20000 / (mean * mean) == 2, boost::test_tools::tolerance(0.07));  // coefficient of variation 1
}

BOOST_AUTO_TEST_CASE(arrivals_without_trace_or_rate_are_refused) {
  BOOST_CHECK_THROW(make_open_loop({}), UserError);
}

BOOST_AUTO_TEST_CASE(the_output_limit_makes_prefill_only) {
  const Trace trace = two_sessions();
  auto load = make_open_loop({.trace = &trace, .lengths = {.output_limit = 1}});
  for (const auto& request : take(*load, 9)) BOOST_TEST(request.output_tokens == 1u);
}
