// What a day of a fleet earns, costs and burns, hour by hour. Formulas: analysis/README.md.
#pragma once
#include <array>
#include <vector>

namespace rackcast {

// USD per token.
struct TokenUsd {
  double cached = 0, computed = 0, output = 0;
};

struct FleetPrices {
  TokenUsd off_peak, peak;
  std::vector<int> peak_hours_utc;
  double gpu_usd_hour = 0;
  double gpu_watts = 0;      // all-in, whether the GPU works or not
  double gpus = 0;           // paid and powered all day, spare ones too
};

// Tokens per second of the whole fleet in one hour.
struct HourRate {
  double cached = 0, computed = 0, output = 0;
  double all() const { return cached + computed + output; }
};

struct HourMoney {
  bool peak = false;
  double tokens = 0, revenue_usd = 0, cost_usd = 0, kwh = 0;
};

struct DayMoney {
  std::array<HourMoney, 24> hours;
  HourMoney total;           // peak: of no meaning
  double margin_usd() const { return total.revenue_usd - total.cost_usd; }
  double usd_per_mtok() const { return total.tokens > 0 ? total.cost_usd / total.tokens * 1e6 : 0; }
  double tok_per_joule() const { return total.kwh > 0 ? total.tokens / (total.kwh * 3.6e6) : 0; }
};

DayMoney money_of_day(const std::array<HourRate, 24>& rates, const FleetPrices& prices);

}  // namespace rackcast
