#define BOOST_TEST_MODULE day
#include <boost/test/unit_test.hpp>

#include "analysis/day.hpp"

using namespace rackcast;

namespace {

// 10 GPUs at 2 USD and 1.5 kW; tokens at 1, 10 and 100 USD per million, twice that at 3 and 4 UTC.
FleetPrices prices() {
  FleetPrices p;
  p.off_peak = {1e-6, 10e-6, 100e-6};
  p.peak = {2e-6, 20e-6, 200e-6};
  p.peak_hours_utc = {3, 4};
  p.gpu_usd_hour = 2;
  p.gpu_watts = 1500;
  p.gpus = 10;
  return p;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_kind_of_token_has_its_price_and_peak_hours_pay_the_peak_price) {
  std::array<HourRate, 24> rates{};
  rates[2] = rates[3] = {1000, 100, 10};
  const DayMoney day = money_of_day(rates, prices());
  const double off_peak = 3600 * (1000 * 1e-6 + 100 * 10e-6 + 10 * 100e-6);
  BOOST_TEST(!day.hours[2].peak);
  BOOST_TEST(day.hours[3].peak);
  BOOST_TEST(day.hours[2].revenue_usd == off_peak, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(day.hours[3].revenue_usd == 2 * off_peak, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(day.total.revenue_usd == 3 * off_peak, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(day.total.tokens == 2 * 3600 * 1110.0);
}

BOOST_AUTO_TEST_CASE(gpus_are_paid_and_powered_all_day_whether_they_work_or_not) {
  const DayMoney idle = money_of_day({}, prices());
  BOOST_TEST(idle.total.cost_usd == 24 * 10 * 2.0);
  BOOST_TEST(idle.total.kwh == 24 * 10 * 1.5);
  BOOST_TEST(idle.margin_usd() == -480.0);
  BOOST_TEST(idle.usd_per_mtok() == 0.0);
  std::array<HourRate, 24> rates{};
  rates.fill({900, 90, 10});
  const DayMoney busy = money_of_day(rates, prices());
  BOOST_TEST(busy.tok_per_joule() == 1000.0 / (10 * 1500), boost::test_tools::tolerance(1e-12));
  BOOST_TEST(busy.usd_per_mtok() == 480 / (24 * 3600 * 1000.0 / 1e6), boost::test_tools::tolerance(1e-12));
}
