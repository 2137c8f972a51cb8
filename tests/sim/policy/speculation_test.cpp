#define BOOST_TEST_MODULE speculation
#include "sim/policy/speculation.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace rackcast;

BOOST_AUTO_TEST_CASE(without_drafts_a_request_needs_one_step_a_token) {
  const Acceptance none;
  BOOST_TEST(none.steps_for(217, 1) == 217U);
  BOOST_TEST(none.query_tokens() == 1);
}

BOOST_AUTO_TEST_CASE(a_constant_rate_gives_the_mean_that_was_asked_for) {
  const Acceptance five(5, 3.51, {});
  BOOST_TEST(five.mean() == 3.51, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(five.query_tokens() == 6);
}

BOOST_AUTO_TEST_CASE(steps_of_short_and_long_requests_follow_the_mean) {
  const Acceptance five(5, 3.51, {});
  for (const std::uint32_t tokens : {20U, 400U, 20000U}) {
    double sum = 0;
    const int draws = 20000;
    for (int i = 0; i < draws; ++i) sum += five.steps_for(tokens, static_cast<std::uint64_t>(i) * 977 + tokens);
    // Wald: E[steps] tau = tokens + mean overshoot, and the overshoot lies between 0 and 5.
    const double kept = sum / draws * 3.51;
    BOOST_TEST(kept > tokens);
    BOOST_TEST(kept < tokens + 3.0);
  }
}

BOOST_AUTO_TEST_CASE(the_bulk_draw_has_the_spread_of_step_by_step_draws) {
  // Var[steps] = variance / tau^3 * tokens for a renewal count; variance of one step from its distribution.
  const std::vector<double> rates{0.579 / 1.0, 0.772, 0.707, 0.75, 0.667};
  const Acceptance drafts(5, 0, rates);
  double mean = 1, second = 1, product = 1;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    product *= rates[i];
    mean += product;
    second += product * (2.0 * static_cast<double>(i + 1) + 1.0);
  }
  BOOST_TEST(drafts.mean() == mean, boost::test_tools::tolerance(1e-12));
  const double variance = second - mean * mean;
  double sum = 0, squares = 0;
  const int draws = 20000;
  const double tokens = 3000;
  for (int i = 0; i < draws; ++i) {
    const double steps = drafts.steps_for(3000, static_cast<std::uint64_t>(i));
    sum += steps;
    squares += steps * steps;
  }
  const double spread = squares / draws - sum / draws * (sum / draws);
  BOOST_TEST(spread == variance / (mean * mean * mean) * tokens, boost::test_tools::tolerance(0.05));
}

BOOST_AUTO_TEST_CASE(a_step_that_verifies_fewer_drafts_keeps_less) {
  const Acceptance acceptance(3, 1, std::vector<double>{0.8, 0.5, 0.5});
  BOOST_CHECK_CLOSE(acceptance.kept(0), 1.0, 1e-9);
  BOOST_CHECK_CLOSE(acceptance.kept(1), 1.8, 1e-9);
  BOOST_CHECK_CLOSE(acceptance.kept(3), acceptance.mean(), 1e-9);
}
