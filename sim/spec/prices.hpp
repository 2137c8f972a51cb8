// A dated price list: what a provider is paid per token, by model, off-peak and peak.
#pragma once
#include <map>
#include <string>

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
  std::string name;
  std::map<std::string, ModelPrice> models;
};
void fields(Visitor& v, PriceList& p);

enum class PricePeriod { off_peak, peak };
enum class GpuPriceKind { owning, rental };

struct PricesSpec {
  PriceList list;  // reference into scenarios/prices
  PricePeriod period = PricePeriod::off_peak;
  GpuPriceKind gpu = GpuPriceKind::owning;
};
void fields(Visitor& v, PricesSpec& p);

}  // namespace rackcast
