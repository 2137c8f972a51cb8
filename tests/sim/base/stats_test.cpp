#define BOOST_TEST_MODULE stats
#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <cmath>

#include "sim/base/random.hpp"
#include "sim/base/stats.hpp"

using namespace rackcast;

BOOST_AUTO_TEST_CASE(percentiles_are_numpys) {
  // numpy.percentile([3.5, 1.25, 9.75, 2.0, 7.125, 4.0, 8.5], q), by hand: position q/100 * 6 in the sorted list.
  std::vector<double> values = {3.5, 1.25, 9.75, 2.0, 7.125, 4.0, 8.5};
  const std::pair<double, double> expected[] = {{0, 1.25}, {10, 1.7}, {50, 4.0}, {75, 7.8125}, {90, 9.0}, {100, 9.75}};
  for (const auto& [q, value] : expected) {
    std::vector<double> copy = values;
    BOOST_TEST(percentile(copy, q) == value, boost::test_tools::tolerance(1e-15));
    std::ranges::sort(copy);
    BOOST_TEST(percentile_of_sorted(copy, q) == value, boost::test_tools::tolerance(1e-15));
  }
}

BOOST_AUTO_TEST_CASE(one_value_is_every_percentile_and_none_is_nan) {
  std::vector<double> one = {7};
  BOOST_TEST(percentile(one, 99) == 7);
  std::vector<double> empty;
  BOOST_TEST(std::isnan(percentile(empty, 50)));
  BOOST_TEST(std::isnan(percentile_of_sorted(empty, 50)));
}

BOOST_AUTO_TEST_CASE(running_statistics_survive_a_large_offset) {
  RunningStats stats;
  for (const double x : {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16}) stats.add(x);
  BOOST_TEST(stats.mean() == 1e9 + 10);
  BOOST_TEST(stats.variance() == 30);
  BOOST_TEST(stats.count() == 4U);
}

BOOST_AUTO_TEST_CASE(streams_differ_by_name_index_and_seed_and_repeat) {
  const std::uint64_t first = random_stream(42, "lanes").next();
  BOOST_TEST(random_stream(42, "lanes").next() == first);
  BOOST_TEST(random_stream(42, "lanes", 1).next() != first);
  BOOST_TEST(random_stream(42, "lane").next() != first);
  BOOST_TEST(random_stream(43, "lanes").next() != first);
}
