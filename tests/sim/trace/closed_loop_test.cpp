#define BOOST_TEST_MODULE closed_loop
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/trace/closed_loop.hpp"
#include "sim/trace/ideal_cache.hpp"

using namespace rackcast;

namespace {
std::vector<LoadRequest> take(Load& load, double now_s) {
  std::vector<LoadRequest> out;
  load.take_due(now_s, out);
  return out;
}
}  // namespace

BOOST_AUTO_TEST_CASE(every_user_has_one_request_in_flight) {
  auto load = make_closed_loop({.users = 3, .lengths = {.input_tokens = 100, .output_tokens = 10}});
  const auto first = take(*load, 0);
  BOOST_TEST(first.size() == 3u);
  BOOST_TEST(load->next_time_s() == never_s);
  BOOST_TEST(take(*load, 5).empty());
  load->finished(first[1].id, 7);
  BOOST_TEST(load->next_time_s() == 7);
  const auto next = take(*load, 7);
  BOOST_REQUIRE(next.size() == 1u);
  BOOST_TEST(next[0].lane == 1u);
  BOOST_TEST(next[0].id != first[1].id);
  BOOST_TEST(next[0].runs.empty());  // nothing can ever be shared
}

BOOST_AUTO_TEST_CASE(lengths_are_uniform_between_the_ratio_and_the_nominal) {
  auto load = make_closed_loop({.users = 20000, .lengths = {.input_tokens = 8192, .output_tokens = 1024, .range_ratio = 0.8}});
  double input = 0, output = 0;
  std::uint32_t low = 9999, high = 0;
  for (const LoadRequest& request : take(*load, 0)) {
    input += request.input_tokens;
    output += request.output_tokens;
    low = std::min(low, request.output_tokens);
    high = std::max(high, request.output_tokens);
  }
  BOOST_TEST(input / 20000 == 7373, boost::test_tools::tolerance(0.002));  // four standard errors are 0.0018
  BOOST_TEST(output / 20000 == 922, boost::test_tools::tolerance(0.002));
  BOOST_TEST(low == 819u);
  BOOST_TEST(high == 1024u);
}

BOOST_AUTO_TEST_CASE(the_load_ends_after_the_asked_requests_and_the_warm_up_is_not_counted) {
  auto load = make_closed_loop({.users = 2, .requests = 3, .warmup_requests = 2});
  BOOST_CHECK(load->phase() == LoadPhase::warmup);
  const auto first = take(*load, 0);
  BOOST_CHECK(load->phase() == LoadPhase::measured);
  for (const auto& request : first) BOOST_CHECK(request.phase == LoadPhase::warmup);
  for (const auto& request : first) load->finished(request.id, 1);
  const auto second = take(*load, 1);
  BOOST_TEST(second.size() == 2u);
  BOOST_TEST(!load->exhausted());
  for (const auto& request : second) load->finished(request.id, 2);
  BOOST_TEST(take(*load, 2).size() == 1u);
  BOOST_TEST(load->exhausted());
  BOOST_TEST(load->next_time_s() == never_s);
}

BOOST_AUTO_TEST_CASE(turns_repeat_the_session_and_half_the_first_prompt_is_common) {
  auto load = make_closed_loop({.users = 1,
                                .lengths = {.input_tokens = 1024, .output_tokens = 128},
                                .turns = 4,
                                .shared_prefix = 0.5,
                                .prefix_groups = 16});
  IdealCache cache;
  double now_s = 0;
  for (int session = 0; session < 40; ++session) {
    for (std::uint32_t turn = 0; turn < 4; ++turn) {
      const auto requests = take(*load, now_s);
      BOOST_REQUIRE(requests.size() == 1u);
      const LoadRequest& request = requests[0];
      BOOST_TEST(request.input_tokens == 1024 * (turn + 1) + 128 * turn);
      BOOST_TEST(request.runs[0].count == 8u);  // half of 1024 tokens in blocks of 64
      BOOST_TEST(request.runs[0].first == 8u * (static_cast<unsigned>(session) % 16));
      const std::uint32_t held = cache.add(request.runs);
      BOOST_TEST(held == request.ideal_cached_blocks);
      BOOST_TEST(held == (turn > 0 ? (1024 * turn + 128 * (turn - 1)) / 64 : session >= 16 ? 8u : 0u));
      load->finished(request.id, ++now_s);
    }
  }
}

BOOST_AUTO_TEST_CASE(sessions_and_prefixes_that_no_id_can_name_are_refused) {
  BOOST_CHECK_THROW(make_closed_loop({.lengths = {.input_tokens = 1U << 20}, .turns = 4096}), UserError);
  BOOST_CHECK_THROW(make_closed_loop({.lengths = {.input_tokens = 1U << 20}, .shared_prefix = 1, .prefix_groups = 1U << 20}), UserError);
}

BOOST_AUTO_TEST_CASE(a_stopped_load_gives_nothing_more) {
  auto load = make_closed_loop({.users = 4});
  load->stop();
  BOOST_TEST(load->next_time_s() == never_s);
  BOOST_TEST(take(*load, 1).empty());
  BOOST_TEST(load->exhausted());
}
