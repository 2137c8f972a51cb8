#define BOOST_TEST_MODULE stopping_rule
#include <boost/test/unit_test.hpp>

#include "calib/stopping_rule.hpp"

using namespace rackcast::calib;

BOOST_AUTO_TEST_CASE(equal_samples_stop_at_the_minimum_and_not_before) {
  StoppingRule rule({20, 1000, 10, 0.005});
  for (int i = 0; i < 19; ++i) rule.add(10, 0.001);
  BOOST_TEST(!rule.done());
  rule.add(10, 0.001);
  BOOST_TEST(rule.done());
}

BOOST_AUTO_TEST_CASE(scattered_samples_go_on_until_the_time_is_over) {
  StoppingRule rule({20, 1000, 0.5, 0.005});
  for (int i = 0; i < 49; ++i) rule.add(i % 2 ? 8 : 12, 0.01);
  BOOST_TEST(!rule.done());
  rule.add(10, 0.01);
  BOOST_TEST(rule.done());
}

BOOST_AUTO_TEST_CASE(scattered_samples_stop_at_the_largest_count) {
  StoppingRule rule({20, 30, 100, 0.005});
  for (int i = 0; i < 29; ++i) rule.add(i % 2 ? 8 : 12, 0.001);
  BOOST_TEST(!rule.done());
  rule.add(8, 0.001);
  BOOST_TEST(rule.done());
}

BOOST_AUTO_TEST_CASE(the_time_limit_does_not_cut_the_minimum_short) {
  StoppingRule rule({20, 1000, 0.5, 0.005});
  for (int i = 0; i < 19; ++i) rule.add(10, 1);
  BOOST_TEST(!rule.done());
}

BOOST_AUTO_TEST_CASE(one_outlier_does_not_widen_the_interval_of_the_median) {
  StoppingRule rule({20, 1000, 10, 0.005});
  for (int i = 0; i < 40; ++i) rule.add(i == 7 ? 100 : 10, 0.001);
  BOOST_TEST(rule.relative_half_width() == 0);
}

BOOST_AUTO_TEST_CASE(a_summary_is_the_known_percentiles_of_one_to_eleven) {
  const Summary s = summarise({11, 1, 2, 10, 3, 9, 4, 8, 5, 7, 6});
  BOOST_TEST(s.count == 11u);
  BOOST_TEST(s.median == 6);
  BOOST_TEST(s.mad == 3);
  BOOST_TEST(s.p10 == 2);
  BOOST_TEST(s.p90 == 10);
  BOOST_TEST(s.min == 1);
}
