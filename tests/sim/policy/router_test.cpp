#define BOOST_TEST_MODULE router
#include "sim/policy/router.hpp"

#include <boost/test/unit_test.hpp>
#include <map>
#include <vector>

#include "sim/policy/batcher.hpp"

using namespace rackcast;

namespace {

struct Caches final : PrefixView {
  std::map<std::uint32_t, std::uint32_t> tokens;
  std::uint32_t matched_tokens(std::uint32_t target, const RouteQuery&) const override {
    const auto found = tokens.find(target);
    return found == tokens.end() ? 0 : found->second;
  }
};

const std::vector<HashRun> prompt{{1, 1000}};

}  // namespace

BOOST_AUTO_TEST_CASE(round_robin_takes_every_target_in_turn) {
  auto router = make_router(RouterPolicy::round_robin, {});
  const std::vector<TargetLoad> loads(3);
  Caches caches;
  for (std::uint32_t i = 0; i < 6; ++i) BOOST_TEST(router->pick({}, loads, caches) == i % 3);
}

BOOST_AUTO_TEST_CASE(least_loaded_counts_tokens_or_requests_as_told_and_spreads_ties) {
  std::vector<TargetLoad> loads{{500, 1, 0, 0}, {100, 9, 0, 0}, {300, 2, 0, 0}};
  Caches caches;
  BOOST_TEST(make_router(RouterPolicy::least_loaded, {BalancePolicy::tokens, 1.5})->pick({}, loads, caches) == 1U);
  BOOST_TEST(make_router(RouterPolicy::least_loaded, {BalancePolicy::count, 1.5})->pick({}, loads, caches) == 0U);
  auto router = make_router(RouterPolicy::least_loaded, {});
  const std::vector<TargetLoad> idle(2);
  const std::uint32_t first = router->pick({}, idle, caches), second = router->pick({}, idle, caches);
  BOOST_TEST(first != second);
}

BOOST_AUTO_TEST_CASE(a_session_stays_where_it_began) {
  auto router = make_router(RouterPolicy::session_affinity, {});
  std::vector<TargetLoad> loads{{500, 1, 0, 0}, {100, 1, 0, 0}};
  Caches caches;
  BOOST_TEST(router->pick({.lane = 7, .runs = {}}, loads, caches) == 1U);
  loads[1].queued_tokens = 1e6;
  BOOST_TEST(router->pick({.lane = 7, .runs = {}}, loads, caches) == 1U);
  BOOST_TEST(router->pick({.lane = 8, .runs = {}}, loads, caches) == 0U);
}

BOOST_AUTO_TEST_CASE(a_prompt_goes_to_its_prefix_unless_another_target_would_be_done_load_limit_times_sooner) {
  auto router = make_router(RouterPolicy::prefix_affinity, {BalancePolicy::tokens, 1.5});
  std::vector<TargetLoad> loads{{0, 0, 0, 0}, {10, 0, 0, 0}};
  Caches caches;
  const RouteQuery query{.lane = 0, .play = 4, .runs = prompt, .block_tokens = 64, .input_tokens = 65000};
  BOOST_TEST(router->pick(query, loads, caches) == 0U);   // nobody has it: least loaded
  caches.tokens[0] = 64000;
  loads[0].queued_tokens = 1.5 * 65010 - 1000 - 1;
  BOOST_TEST(router->pick(query, loads, caches) == 0U);   // 65,010 tokens to do elsewhere
  loads[0].queued_tokens += 2;
  BOOST_TEST(router->pick(query, loads, caches) == 1U);
  caches.tokens[1] = 64000;
  BOOST_TEST(router->pick(query, loads, caches) == 1U);   // equal prefix: the shorter queue
}

BOOST_AUTO_TEST_CASE(an_overloaded_home_hands_over_to_a_neighbour_that_loads_from_the_same_host_memory) {
  auto router = make_router(RouterPolicy::prefix_affinity, {BalancePolicy::tokens, 1.5});
  std::vector<TargetLoad> loads{{0, 0, 0, 2}, {500, 0, 0, 2}, {100, 0, 2, 4}, {400, 0, 2, 4}};
  Caches caches;
  const RouteQuery query{.lane = 0, .play = 4, .runs = prompt, .block_tokens = 64, .input_tokens = 65000};
  BOOST_TEST(router->pick(query, loads, caches) == 0U);
  caches.tokens = {{0, 64000}, {1, 64000}};               // 1 sees what 0 wrote to host memory
  loads[0].queued_tokens = 5000;
  BOOST_TEST(router->pick(query, loads, caches) == 1U);
}

BOOST_AUTO_TEST_CASE(a_hand_over_goes_to_the_decode_rank_with_least_that_has_room) {
  const std::vector<DecodeRankLoad> ranks{{3, 100, 50}, {1, 900, 500}, {2, 50, 10}};
  BOOST_TEST(pick_decode_rank(ranks, BalancePolicy::count, 4, 40) == 1);
  BOOST_TEST(pick_decode_rank(ranks, BalancePolicy::tokens, 4, 40) == 0);
  BOOST_TEST(pick_decode_rank(ranks, BalancePolicy::tokens, 4, 10) == 2);
  BOOST_TEST(pick_decode_rank(ranks, BalancePolicy::tokens, 3, 40) == 1);   // rank 0 holds its three
  BOOST_TEST(pick_decode_rank(ranks, BalancePolicy::tokens, 4, 501) == -1);
}

BOOST_AUTO_TEST_CASE(a_hash_sends_sessions_everywhere_and_keeps_each_at_its_target_but_one_that_is_down) {
  auto router = make_router(RouterPolicy::session_hash, {});
  std::vector<TargetLoad> loads(4);
  Caches caches;
  std::vector<int> sessions(4);
  for (std::uint32_t play = 0; play < 400; ++play) {
    const std::uint32_t target = router->pick({.play = play, .runs = {}}, loads, caches);
    ++sessions[target];
    loads[target].queued_tokens = 1e9;
    BOOST_TEST(router->pick({.play = play, .runs = {}}, loads, caches) == target);
    loads[target].queued_tokens = 0;
  }
  for (const int n : sessions) BOOST_TEST((n > 60 && n < 140));  // 100 +- 9
  const std::uint32_t home = router->pick({.play = 1, .runs = {}}, loads, caches);
  loads[home].down = true;
  BOOST_TEST(router->pick({.play = 1, .runs = {}}, loads, caches) != home);
}
