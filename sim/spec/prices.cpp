#include "sim/spec/prices.hpp"

#include <algorithm>

namespace rackcast {

const std::vector<Choice> price_periods = {{"off_peak", "the lower price, nights and weekends"},
                                           {"peak", "the price of the list's peak hours"}};
const std::vector<Choice> gpu_price_kinds = {{"owning", "hardware, power and hosting over its life"},
                                             {"rental", "a three-year contract"}};

void fields(Visitor& v, TokenPrice& p) {
  const auto price = [&](const char* key, Dollars& member, const char* doc) {
    v.field(key, member, doc).required().require(member.value() >= 0, "must be >= 0");
  };
  price("cached_input", p.cached_input, "input tokens found in the prefix cache");
  price("input", p.input, "input tokens that are computed");
  price("output", p.output, "output tokens");
}

void fields(Visitor& v, ModelPrice& p) {
  v.group("off_peak", p.off_peak, "price outside peak hours").required();
  v.group("peak", p.peak, "price in peak hours").required();
  v.field("source", p.source, "where the price was published, and since when it holds").required();
}

void fields(Visitor& v, PriceList& p) {
  v.field("name", p.name, "name of the list; empty: no list, so no revenue").required();
  v.field("source", p.source, "where the list comes from, with date");
  v.field("peak_hours_utc", p.peak_hours_utc, "hours of the day (0-23, UTC) that are peak")
      .require(std::ranges::all_of(p.peak_hours_utc, [](int hour) { return hour >= 0 && hour < 24; }), "hours are 0 to 23");
  constexpr std::string_view days[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
  v.field("peak_days", p.peak_days, "days that have peak hours: mon to sun")
      .require(std::ranges::all_of(p.peak_days, [&](const std::string& day) { return std::ranges::find(days, day) != std::end(days); }),
               "days are mon, tue, wed, thu, fri, sat, sun");
  v.map("models", p.models, "price by model name").required();
}

void fields(Visitor& v, PricesSpec& p) {
  v.reference("list", p.list, "prices", "what a token is sold for").required();
  v.choice("period", p.period, price_periods, "which of the list's prices holds during the run");
  v.choice("gpu", p.gpu, gpu_price_kinds, "which price of a GPU-hour the cost rests on");
}

}  // namespace rackcast
