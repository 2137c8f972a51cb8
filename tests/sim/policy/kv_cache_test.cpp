#define BOOST_TEST_MODULE kv_cache
#include "sim/policy/kv_cache.hpp"

#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <set>

using namespace rackcast;

namespace {

constexpr std::uint32_t block = 64;

// A whole request as an engine plays it: acquire, reserve, append, release.
std::uint32_t play_request(KvCache& cache, std::uint32_t play, const std::vector<HashRun>& runs) {
  std::uint32_t blocks = 0;
  for (const HashRun& run : runs) blocks += run.count;
  KvCache::Held held = cache.acquire(play, runs);
  const std::uint32_t hit = held.blocks;
  const std::int64_t missing = std::int64_t{blocks - hit} * block;
  if (!cache.reserve(missing)) {
    cache.release(play, runs, held);
    return hit;
  }
  cache.release_private(missing - cache.append(play, runs, blocks, block, held));
  cache.release(play, runs, held);
  cache.check();
  return hit;
}

// A random prefix tree: every node is a block with a parent; a path is written as runs of consecutive ids.
struct Tree {
  std::vector<std::int64_t> parent{-1};
  std::mt19937 random{7};

  std::vector<HashRun> grow_path() {
    std::vector<std::uint32_t> path;
    for (std::int64_t at = std::uniform_int_distribution<std::int64_t>(0, static_cast<std::int64_t>(parent.size()) - 1)(random); at >= 0;
         at = parent[static_cast<std::size_t>(at)])
      path.insert(path.begin(), static_cast<std::uint32_t>(at));
    for (int more = std::uniform_int_distribution<int>(0, 9)(random); more > 0; --more) {
      parent.push_back(path.back());
      path.push_back(static_cast<std::uint32_t>(parent.size() - 1));
    }
    std::vector<HashRun> runs;
    for (const std::uint32_t id : path)
      if (!runs.empty() && runs.back().first + runs.back().count == id) ++runs.back().count;
      else runs.push_back({id, 1});
    return runs;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_grown_conversation_hits_everything_but_its_new_blocks) {
  KvCache cache(KvCache::unlimited);
  BOOST_TEST(play_request(cache, 1, {{1, 282}}) == 0U);
  BOOST_TEST(play_request(cache, 1, {{1, 350}}) == 282U);
  BOOST_TEST(cache.segments() == 1U);
  BOOST_TEST(play_request(cache, 1, {{1, 40}, {5000, 100}}) == 40U);
  BOOST_TEST(play_request(cache, 1, {{1, 40}, {5000, 100}}) == 140U);
  BOOST_TEST(play_request(cache, 2, {{1, 350}}) == 0U);  // another play shares nothing
}

BOOST_AUTO_TEST_CASE(hits_equal_a_set_of_single_blocks_on_random_prefix_trees) {
  Tree tree;
  KvCache cache(KvCache::unlimited);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 3000; ++i) {
    const std::vector<HashRun> runs = tree.grow_path();
    std::uint32_t expected = 0;
    bool inside = true;
    for (const HashRun& run : runs)
      for (std::uint32_t id = run.first; id < run.first + run.count; ++id) {
        inside = inside && seen.count(id) > 0;
        expected += inside ? 1 : 0;
      }
    BOOST_REQUIRE_EQUAL(cache.matched_blocks(3, runs), expected);
    BOOST_REQUIRE_EQUAL(play_request(cache, 3, runs), expected);
    for (const HashRun& run : runs)
      for (std::uint32_t id = run.first; id < run.first + run.count; ++id) seen.insert(id);
  }
  BOOST_TEST(cache.used_tokens() == static_cast<std::int64_t>(seen.size()) * block);
}

BOOST_AUTO_TEST_CASE(a_full_cache_never_exceeds_its_memory_and_keeps_prefixes_before_what_hangs_on_them) {
  Tree tree;
  KvCache cache(100 * block);
  std::vector<std::vector<HashRun>> paths;
  for (int i = 0; i < 3000; ++i) {
    paths.push_back(tree.grow_path());
    play_request(cache, 3, paths.back());
    BOOST_REQUIRE(cache.used_tokens() <= 100 * block);
  }
  // Closed under prefixes: what any path finds adds up to what is resident.
  std::set<std::uint32_t> found;
  for (const auto& runs : paths) {
    std::uint32_t left = cache.matched_blocks(3, runs);
    for (const HashRun& run : runs)
      for (std::uint32_t k = 0; k < run.count && left > 0; ++k, --left) found.insert(run.first + k);
  }
  BOOST_TEST(static_cast<std::int64_t>(found.size()) * block == cache.used_tokens());
}

BOOST_AUTO_TEST_CASE(the_least_recently_used_path_goes_first_and_from_its_end) {
  KvCache cache(100 * block);
  play_request(cache, 1, {{1, 50}});
  play_request(cache, 2, {{1, 50}});
  play_request(cache, 1, {{1, 50}});       // play 2 is now the older one
  play_request(cache, 3, {{1, 20}});
  BOOST_TEST(cache.matched_blocks(1, std::vector<HashRun>{{1, 50}}) == 50U);
  BOOST_TEST(cache.matched_blocks(2, std::vector<HashRun>{{1, 50}}) == 30U);
  BOOST_TEST(cache.evicted_tokens() == 20 * block);
}

BOOST_AUTO_TEST_CASE(held_blocks_are_not_evicted_and_a_request_that_cannot_fit_is_refused) {
  KvCache cache(100 * block);
  const std::vector<HashRun> runs{{1, 90}};
  play_request(cache, 1, runs);
  const KvCache::Held held = cache.acquire(1, runs);
  BOOST_TEST(!cache.reserve(11 * block));
  BOOST_TEST(cache.reserve(10 * block));
  cache.release_private(10 * block);
  cache.release(1, runs, held);
  BOOST_TEST(cache.reserve(100 * block));
  BOOST_TEST(cache.matched_blocks(1, runs) == 0U);
}

BOOST_AUTO_TEST_CASE(two_requests_that_compute_the_same_blocks_at_once_keep_one_copy) {
  KvCache cache(KvCache::unlimited);
  const std::vector<HashRun> runs{{1, 10}};
  KvCache::Held one = cache.acquire(1, runs), two = cache.acquire(1, runs);
  BOOST_TEST(cache.reserve(10 * block));
  BOOST_TEST(cache.reserve(10 * block));
  cache.append(1, runs, 4, block, one);   // chunk by chunk, one before the other
  cache.append(1, runs, 7, block, two);
  cache.append(1, runs, 10, block, one);
  cache.append(1, runs, 10, block, two);
  BOOST_TEST(cache.private_tokens() == 0);
  BOOST_TEST(cache.used_tokens() == 10 * block);
  cache.release(1, runs, one);
  BOOST_TEST(cache.pinned_tokens() == 10 * block);
  cache.release(1, runs, two);
  BOOST_TEST(cache.pinned_tokens() == 0);
  cache.check();
}

BOOST_AUTO_TEST_CASE(requests_that_hold_and_grow_paths_at_once_give_everything_back) {
  struct Running {
    std::vector<HashRun> runs;
    KvCache::Held held;
    std::uint32_t blocks = 0;
    std::int64_t space = 0;
  };
  Tree tree;
  KvCache cache(400 * block);
  std::vector<Running> running;
  const auto end = [&](std::size_t i) {
    cache.release(3, running[i].runs, running[i].held);
    cache.release_private(running[i].space);
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (int round = 0; round < 20000; ++round) {
    const std::size_t pick = tree.random() % 8;
    if (pick < running.size()) {
      Running& one = running[pick];
      const std::uint32_t to = std::min(one.blocks, one.held.blocks + 1 + static_cast<std::uint32_t>(tree.random() % 5));
      if (one.held.blocks == one.blocks) end(pick);
      else one.space -= cache.append(3, one.runs, to, block, one.held);
    } else {
      Running one{tree.grow_path(), {}, 0, 0};
      for (const HashRun& run : one.runs) one.blocks += run.count;
      one.held = cache.acquire(3, one.runs);
      one.space = std::int64_t{one.blocks - one.held.blocks} * block;
      if (cache.reserve(one.space)) running.push_back(one);
      else cache.release(3, one.runs, one.held);
    }
    if (round % 100 == 0) cache.check();
  }
  while (!running.empty()) end(0);
  cache.check();
  BOOST_TEST(cache.pinned_tokens() == 0);
}

// A segment that grew in place past a branch that nobody held, a request that takes the branch, and one that cuts the
// segment there meanwhile: the far half must not keep a reference that nobody gives back.
BOOST_AUTO_TEST_CASE(a_branch_out_of_the_middle_of_a_grown_segment_holds_nothing_beyond_it) {
  KvCache cache(100 * block);
  const std::vector<HashRun> trunk{{0, 10}}, branch{{0, 5}, {20, 5}}, other{{0, 5}, {40, 5}};
  KvCache::Held growing = cache.acquire(1, trunk);
  BOOST_REQUIRE(cache.reserve(10 * block));
  cache.append(1, trunk, 5, block, growing);
  play_request(cache, 1, branch);
  cache.append(1, trunk, 10, block, growing);
  cache.release(1, trunk, growing);
  KvCache::Held taken = cache.acquire(1, branch);
  BOOST_TEST(taken.blocks == 10U);
  BOOST_TEST(cache.pinned_tokens() == 10 * block);
  play_request(cache, 1, other);
  cache.release(1, branch, taken);
  BOOST_TEST(cache.pinned_tokens() == 0);
  cache.check();
}

BOOST_AUTO_TEST_CASE(what_a_request_leaves_takes_room_until_it_is_the_least_recent) {
  KvCache cache(10 * block);
  const std::vector<HashRun> first{{0, 4}}, second{{100, 4}};
  play_request(cache, 1, first);
  cache.leave(2 * block);
  BOOST_TEST(cache.used_tokens() == 6 * block);
  play_request(cache, 2, second);  // 10 blocks: all room is taken
  cache.check();
  play_request(cache, 3, std::vector<HashRun>{{200, 4}});  // the oldest path goes, not what was left after it
  cache.check();
  BOOST_TEST(cache.matched_blocks(1, first) == 0u);
  BOOST_TEST(cache.used_tokens() == 10 * block);
  play_request(cache, 4, std::vector<HashRun>{{300, 2}});  // and then what was left
  BOOST_TEST(cache.matched_blocks(2, second) == 4u);
  cache.leave(11 * block);  // too large: nothing happens
  BOOST_TEST(cache.matched_blocks(2, second) == 4u);
  cache.check();
}
