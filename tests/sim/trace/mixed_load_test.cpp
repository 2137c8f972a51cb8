#define BOOST_TEST_MODULE mixed_load
#include <boost/test/unit_test.hpp>

#include <set>

#include "sim/trace/closed_loop.hpp"
#include "sim/trace/mixed_load.hpp"

using namespace rackcast;

namespace {

std::unique_ptr<Load> two_kinds(std::uint64_t warmup = 0) {
  std::vector<std::unique_ptr<Load>> parts;
  parts.push_back(make_closed_loop({.users = 2, .lengths = {.input_tokens = 100, .output_tokens = 10}}));
  parts.push_back(make_closed_loop({.users = 3, .lengths = {.input_tokens = 640, .output_tokens = 20}, .turns = 4, .warmup_requests = warmup}));
  return make_mixed_load(std::move(parts));
}

std::vector<LoadRequest> take(Load& load, double now_s) {
  std::vector<LoadRequest> out;
  load.take_due(now_s, out);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_part_plays_on_lanes_and_prefixes_of_its_own) {
  const auto load = two_kinds();
  BOOST_TEST(load->lanes() == 5u);
  const auto due = take(*load, 0);
  BOOST_REQUIRE(due.size() == 5u);
  std::set<std::uint32_t> lanes, plays;
  std::set<std::uint64_t> ids;
  for (const LoadRequest& request : due) {
    lanes.insert(request.lane);
    plays.insert(request.play);
    ids.insert(request.id);
    BOOST_TEST(request.input_tokens == (request.lane < 2 ? 100u : 640u));
  }
  BOOST_TEST(lanes == (std::set<std::uint32_t>{0, 1, 2, 3, 4}), boost::test_tools::per_element());
  BOOST_TEST(plays.size() == 2u);
  BOOST_TEST(ids.size() == 5u);
}

BOOST_AUTO_TEST_CASE(a_finished_request_goes_back_to_its_part) {
  const auto load = two_kinds();
  const auto first = take(*load, 0);
  BOOST_TEST(load->next_time_s() == never_s);
  load->finished(first[3].id, 2);
  BOOST_TEST(load->next_time_s() == 2);
  const auto next = take(*load, 2);
  BOOST_REQUIRE(next.size() == 1u);
  BOOST_TEST(next[0].lane == first[3].lane);
  BOOST_TEST(next[0].input_tokens > first[3].input_tokens);  // its second turn
}

BOOST_AUTO_TEST_CASE(nothing_is_measured_before_the_last_part_is_warm) {
  const auto load = two_kinds(4);
  BOOST_CHECK(load->phase() == LoadPhase::warmup);
  const auto first = take(*load, 0);
  BOOST_REQUIRE(first.size() == 3u);  // the part without warm-up is held
  for (const LoadRequest& request : first) BOOST_CHECK(request.phase == LoadPhase::warmup);
  load->finished(first[0].id, 1);
  BOOST_TEST(take(*load, 1).size() == 1u);
  BOOST_CHECK(load->phase() == LoadPhase::measured);
  const auto held = take(*load, 1);
  BOOST_REQUIRE(held.size() == 2u);
  for (const LoadRequest& request : held) BOOST_CHECK(request.phase == LoadPhase::measured);
}

BOOST_AUTO_TEST_CASE(a_mix_ends_when_all_of_its_parts_have_ended) {
  const auto load = two_kinds();
  BOOST_TEST(!load->exhausted());
  load->stop();
  BOOST_TEST(load->exhausted());
  BOOST_TEST(load->next_time_s() == never_s);
}

BOOST_AUTO_TEST_CASE(shares_become_whole_lanes_that_add_up) {
  const auto per_element = boost::test_tools::per_element();
  BOOST_TEST(lanes_by_share(10, {0.7, 0.3}) == (std::vector<std::uint32_t>{7, 3}), per_element);
  BOOST_TEST(lanes_by_share(10, {1, 1, 1}) == (std::vector<std::uint32_t>{4, 3, 3}), per_element);
  BOOST_TEST(lanes_by_share(3, {98, 1, 1}) == (std::vector<std::uint32_t>{1, 1, 1}), per_element);
  BOOST_TEST(lanes_by_share(5, {1000, 1}) == (std::vector<std::uint32_t>{4, 1}), per_element);
}
