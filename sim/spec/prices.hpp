// A dated price list: what a provider is paid per token, by model, off-peak and peak.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "sim/base/schema.hpp"

namespace rackcast {

struct TokenPrice {  // USD per token; YAML writes "0.15 USD/Mtok"
  Dollars cached_input{}, input{}, output{};
};
void fields(Visitor& v, TokenPrice& p);

struct ModelPrice {
  TokenPrice off_peak, peak;
  std::string source;  // with date
};
void fields(Visitor& v, ModelPrice& p);

struct PriceList {
  std::string name;                  // empty: no list, so no revenue
  std::string source;                // with date
  std::vector<int> peak_hours_utc;   // hours of day (0-23) that are peak
  std::vector<std::string> peak_days;  // mon ... sun
  std::map<std::string, ModelPrice> models;
};
void fields(Visitor& v, PriceList& p);

enum class PricePeriod { off_peak, peak };
enum class GpuPriceKind { owning, rental };
extern const std::vector<Choice> price_periods, gpu_price_kinds;

struct PricesSpec {
  PriceList list;  // reference into scenarios/prices
  PricePeriod period = PricePeriod::off_peak;
  GpuPriceKind gpu = GpuPriceKind::owning;
};
void fields(Visitor& v, PricesSpec& p);

}  // namespace rackcast
