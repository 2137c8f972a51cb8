#define BOOST_TEST_MODULE ideal_cache
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <set>

#include "sim/base/numpy_random.hpp"
#include "sim/trace/ideal_cache.hpp"
#include "sim/trace/quantile_curve.hpp"

using namespace rackcast;

BOOST_AUTO_TEST_CASE(runs_give_what_single_blocks_would) {
  NumpyRandom random(11);
  IdealCache cache;
  std::set<std::uint32_t> blocks;
  for (int i = 0; i < 3000; ++i) {
    std::vector<HashRun> runs;
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n)
      runs.push_back({static_cast<std::uint32_t>(random.below(4000)), static_cast<std::uint32_t>(1 + random.below(30))});
    std::uint32_t hit = 0;
    bool unbroken = true, touched = false;
    for (const HashRun& run : runs)
      for (std::uint32_t b = run.first; b < run.first + run.count; ++b) {
        touched |= blocks.count(b) > 0;
        // A run may repeat blocks of an earlier one of the same request: those count as held by then.
      }
    BOOST_REQUIRE(cache.touches(runs) == touched);
    for (const HashRun& run : runs) {
      for (std::uint32_t b = run.first; b < run.first + run.count && unbroken; ++b) blocks.count(b) ? ++hit : (unbroken = false);
      for (std::uint32_t b = run.first; b < run.first + run.count; ++b) blocks.insert(b);
    }
    BOOST_REQUIRE(cache.add(runs) == hit);
    BOOST_REQUIRE(cache.blocks() == blocks.size());
  }
}

BOOST_AUTO_TEST_CASE(a_curve_passes_its_knots_and_is_log_normal_between) {
  const QuantileCurve curve({{0, 1}, {0.5, 100}, {0.9, 1000}, {1, 5000}});
  BOOST_TEST(curve.at(0.5) == 100, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(curve.at(0.9) == 1000, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(curve.at(0) == 1);
  BOOST_TEST(curve.at(1) == 5000);
  const double sigma = std::log(10.0) / normal_quantile(0.9);
  BOOST_TEST(curve.at(0.7) == 100 * std::exp(sigma * normal_quantile(0.7)), boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(stratified_ranks_fill_every_stratum_once) {
  NumpyRandom random(2);
  for (const double width : {1.0, 0.3}) {
    std::vector<int> seen(50, 0);
    for (const double rank : stratified_ranks(50, random, width)) {
      ++seen[static_cast<std::size_t>(rank * 50)];
      BOOST_TEST(std::abs(rank * 50 - std::floor(rank * 50) - 0.5) <= width / 2 + 1e-12);
    }
    for (const int count : seen) BOOST_TEST(count == 1);
  }
}

BOOST_AUTO_TEST_CASE(correlated_ranks_have_about_the_asked_rank_correlation) {
  NumpyRandom random(4);
  const std::vector<double> like = stratified_ranks(4000, random);
  for (const double asked : {-0.6, 0.0, 0.3, 0.9}) {
    const std::vector<double> ranks = correlated_ranks(like, asked, random);
    double product = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) product += (ranks[i] - 0.5) * (like[i] - 0.5);
    BOOST_TEST(std::abs(product / 4000 * 12 - asked) < 0.05);
  }
}
