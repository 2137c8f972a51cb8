#define BOOST_TEST_MODULE exchange
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <thread>

#include "calib/exchange.hpp"

using namespace rackcast::calib;

namespace {

// Runs one function per rank as a thread; returns what each threw, empty for nothing.
std::vector<std::string> on_threads(int ranks, const ExchangeLimits& limits, const std::function<void(Exchange&)>& work) {
  auto worlds = between_threads(ranks, limits);
  std::vector<std::string> thrown(worlds.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < worlds.size(); ++r)
    threads.emplace_back([&, r] {
      try {
        work(*worlds[r]);
      } catch (const PeerLost& lost) {
        thrown[r] = lost.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

}  // namespace

BOOST_AUTO_TEST_CASE(threads_gather_in_rank_order_many_times) {
  const auto thrown = on_threads(5, {10, 10}, [](Exchange& exchange) {
    for (int i = 0; i < 2000; ++i) {
      const auto all = exchange.gather("round", std::to_string(exchange.rank() * 1000 + i));
      for (int r = 0; r < 5; ++r)
        if (all[static_cast<std::size_t>(r)] != std::to_string(r * 1000 + i)) throw PeerLost("wrong round");
    }
  });
  for (const std::string& text : thrown) BOOST_TEST(text == "");
}

BOOST_AUTO_TEST_CASE(the_slowest_rank_counts_iteration_by_iteration) {
  on_threads(3, {10, 10}, [](Exchange& exchange) {
    std::vector<double> mine = {1, 1, 1};
    mine[static_cast<std::size_t>(exchange.rank())] = 5;
    const auto largest = max_over_ranks(exchange, "samples", mine);
    if (largest != std::vector<double>{5, 5, 5}) BOOST_ERROR("not the maximum");
  });
}

BOOST_AUTO_TEST_CASE(groups_of_the_first_ranks_work_while_the_others_wait) {
  const auto thrown = on_threads(4, {10, 10}, [](Exchange& exchange) {
    for (const int n : {1, 2, 3, 4}) {
      if (const auto group = exchange.first(n)) {
        if (static_cast<int>(group->gather("inside", "x").size()) != n) throw PeerLost("wrong size");
      } else if (exchange.rank() < n) {
        throw PeerLost("left out");
      }
      barrier(exchange, "step");
    }
  });
  for (const std::string& text : thrown) BOOST_TEST(text == "");
}

BOOST_AUTO_TEST_CASE(ranks_out_of_step_and_ranks_that_stay_away_are_named) {
  const auto astray = on_threads(2, {5, 5}, [](Exchange& exchange) { exchange.gather(exchange.rank() ? "b" : "a", ""); });
  BOOST_TEST((astray[0].find("at 'a'") != std::string::npos && astray[0].find("at 'b'") != std::string::npos));
  const auto away = on_threads(3, {5, 0.2}, [](Exchange& exchange) {
    if (exchange.rank() == 1) return;
    exchange.gather("meeting", "");
  });
  BOOST_TEST(away[0] == "rank 1 did not come to 'meeting' within 0.2 s");
  BOOST_TEST(away[2] == away[0]);
}

BOOST_AUTO_TEST_CASE(a_failure_inside_a_group_frees_those_who_wait_outside) {
  const auto thrown = on_threads(3, {5, 5}, [](Exchange& exchange) {
    if (exchange.rank() == 0) {
      exchange.first(2)->fail("broken");
      return;
    }
    barrier(exchange, "step", 60);
  });
  BOOST_TEST(thrown[2] == "rank 0 stopped: broken");
}
