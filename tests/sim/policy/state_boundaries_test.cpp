#define BOOST_TEST_MODULE state_boundaries
#include "sim/policy/state_boundaries.hpp"

#include <boost/test/unit_test.hpp>

using namespace rackcast;

namespace {

constexpr std::uint32_t block = 64;

std::uint32_t usable(const StateBoundaries& states, std::uint32_t play, const std::vector<HashRun>& runs, std::uint32_t matched) {
  return states.usable(play, runs, matched, block);
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_an_interval_every_block_is_a_boundary) {
  const StateBoundaries states(0);
  BOOST_TEST(states.everywhere());
  BOOST_TEST(usable(states, 1, {{0, 100}}, 37) == 37U);
}

BOOST_AUTO_TEST_CASE(a_prompt_goes_on_from_the_last_multiple_of_the_interval) {
  const StateBoundaries states(10 * block);
  BOOST_TEST(usable(states, 1, {{0, 100}}, 37) == 30U);
  BOOST_TEST(usable(states, 1, {{0, 100}}, 40) == 40U);
  BOOST_TEST(usable(states, 1, {{0, 100}}, 9) == 0U);
  BOOST_TEST(usable(states, 1, {{0, 100}}, 0) == 0U);
  BOOST_TEST(usable(states, 1, {}, 0) == 0U);
}

BOOST_AUTO_TEST_CASE(a_prompt_goes_on_from_the_end_of_an_earlier_one_not_from_its_answer) {
  StateBoundaries states(1000 * block);
  states.prompt_ended(1, std::vector<HashRun>{{0, 5}, {20, 13}});  // 18 blocks, the answer's follow
  BOOST_TEST(usable(states, 1, {{0, 5}, {20, 30}}, 25) == 18U);
  BOOST_TEST(usable(states, 1, {{0, 5}, {20, 30}}, 18) == 18U);
  BOOST_TEST(usable(states, 1, {{0, 5}, {20, 30}}, 17) == 0U);
  BOOST_TEST(usable(states, 2, {{0, 5}, {20, 30}}, 25) == 0U);  // another play's ids mean other blocks
}

BOOST_AUTO_TEST_CASE(a_fork_goes_on_from_the_last_boundary_before_it) {
  StateBoundaries states(1000 * block);
  states.prompt_ended(1, std::vector<HashRun>{{0, 12}});
  states.prompt_ended(1, std::vector<HashRun>{{0, 40}});
  BOOST_TEST(usable(states, 1, {{0, 30}, {90, 5}}, 30) == 12U);
  BOOST_TEST(usable(states, 1, {{0, 50}}, 45) == 40U);
}

BOOST_AUTO_TEST_CASE(an_interval_below_a_block_means_every_block) {
  const StateBoundaries states(1);
  BOOST_TEST(usable(states, 1, {{0, 100}}, 37) == 37U);
}

BOOST_AUTO_TEST_CASE(only_so_many_ends_are_remembered_and_the_first_go_first) {
  StateBoundaries states(std::int64_t{1} << 30);
  for (std::uint32_t i = 0; i <= StateBoundaries::most_ends; ++i) states.prompt_ended(i, std::vector<HashRun>{{0, 7}});
  BOOST_TEST(usable(states, 0, {{0, 9}}, 9) == 0U);
  BOOST_TEST(usable(states, 1, {{0, 9}}, 9) == 7U);
}
