#define BOOST_TEST_MODULE pacing
#include <boost/test/unit_test.hpp>
#include <deque>

#include "calib/pacing.hpp"

using namespace rackcast::calib;

namespace {

// A clock whose readings are given; the last one stays.
struct FakeClock {
  std::deque<int> readings;
  double rested_ms = 0;
  Pacer pacer(const PaceLimits& limits = {}) {
    return Pacer(
        limits, 1980,
        [this]() -> std::optional<int> {
          const int mhz = readings.front();
          if (readings.size() > 1) readings.pop_front();
          return mhz;
        },
        [this](double ms) { rested_ms += ms; });
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_point_waits_until_the_clock_is_back_and_no_longer) {
  FakeClock clock{{1470, 1470, 1845, 1965, 1980}};
  Pacer pacer = clock.pacer();
  pacer.begin_point();
  BOOST_TEST(clock.rested_ms == 3 * PaceLimits{}.poll_ms);
}

BOOST_AUTO_TEST_CASE(a_burst_that_ends_with_a_lowered_clock_does_not_count_and_the_next_is_shorter) {
  FakeClock clock{{1980, 1980, 1500, 1700, 1980, 1980}};
  Pacer pacer = clock.pacer();
  pacer.begin_point();
  BOOST_TEST(pacer.burst_counts());
  const double before = pacer.burst_us();
  BOOST_TEST(!pacer.burst_counts());
  BOOST_TEST(pacer.burst_us() < before);
  BOOST_TEST(clock.rested_ms == PaceLimits{}.lost_ms + PaceLimits{}.poll_ms);
  BOOST_TEST(pacer.burst_counts());
  BOOST_TEST(!pacer.gave_up());
}

BOOST_AUTO_TEST_CASE(a_point_that_always_lowers_the_clock_is_measured_and_says_so) {
  FakeClock clock{{1980, 1400, 1980, 1400, 1980, 1400, 1980, 1400, 1980, 1400}};
  Pacer pacer = clock.pacer();
  pacer.begin_point();
  int lost = 0;
  while (!pacer.burst_counts()) ++lost;
  BOOST_TEST(lost == PaceLimits{}.lost_bursts);
  BOOST_TEST(pacer.gave_up());
  BOOST_TEST(pacer.burst_counts());
}

BOOST_AUTO_TEST_CASE(a_clock_locked_below_the_best_one_stops_the_waiting_after_three_points) {
  FakeClock clock{{1500}};
  Pacer pacer = clock.pacer();
  for (int i = 0; i < 3; ++i) pacer.begin_point();
  const double before = clock.rested_ms;
  pacer.begin_point();
  BOOST_TEST(clock.rested_ms == before);
  BOOST_TEST(pacer.burst_counts());
}

BOOST_AUTO_TEST_CASE(without_readings_nothing_waits_and_everything_counts) {
  double rested = 0;
  Pacer pacer({}, 0, [] { return std::optional<int>(); }, [&](double ms) { rested += ms; });
  pacer.begin_point();
  BOOST_TEST(pacer.burst_counts());
  BOOST_TEST(rested == 0);
}
