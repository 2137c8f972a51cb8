#include "analysis/day.hpp"

#include <algorithm>

namespace rackcast {

DayMoney money_of_day(const std::array<HourRate, 24>& rates, const FleetPrices& prices) {
  constexpr double hour_s = 3600, watts_per_kw = 1000;
  DayMoney day;
  for (std::size_t h = 0; h < rates.size(); ++h) {
    const HourRate& rate = rates[h];
    HourMoney& hour = day.hours[h];
    hour.peak = std::ranges::find(prices.peak_hours_utc, static_cast<int>(h)) != prices.peak_hours_utc.end();
    const TokenUsd& price = hour.peak ? prices.peak : prices.off_peak;
    hour.tokens = rate.all() * hour_s;
    hour.revenue_usd = (rate.cached * price.cached + rate.computed * price.computed + rate.output * price.output) * hour_s;
    hour.cost_usd = prices.gpus * prices.gpu_usd_hour;
    hour.kwh = prices.gpus * prices.gpu_watts / watts_per_kw;
    day.total.tokens += hour.tokens;
    day.total.revenue_usd += hour.revenue_usd;
    day.total.cost_usd += hour.cost_usd;
    day.total.kwh += hour.kwh;
  }
  return day;
}

}  // namespace rackcast
