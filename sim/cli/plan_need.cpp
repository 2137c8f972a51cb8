// How many racks and GPUs a load needs with the best deployment, and what a day of it earns, costs and burns.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "analysis/day.hpp"
#include "sim/base/error.hpp"
#include "sim/cli/plan_run.hpp"

namespace rackcast {

namespace {

using Json = nlohmann::ordered_json;

// `units`: copies of the best deployment's scenario, which may span several racks.
struct Fleet {
  double units = 0, spare_units = 0;
  double all() const { return units + spare_units; }
};

TokenUsd usd_of(const TokenPrice& price) { return {price.cached_input.value(), price.input.value(), price.output.value()}; }

FleetPrices prices_of(const Scenario& s, double gpus) {
  FleetPrices prices;
  const auto found = s.prices.list.models.find(s.model.name);
  if (found != s.prices.list.models.end()) {
    prices.off_peak = usd_of(found->second.off_peak);
    prices.peak = usd_of(found->second.peak);
    prices.peak_hours_utc = s.prices.list.peak_hours_utc;
  }
  const auto hour = s.prices.gpu == GpuPriceKind::owning ? s.rack.gpu.owning_price : s.rack.gpu.rental_price;
  prices.gpu_usd_hour = hour.value() * 3600;
  prices.gpu_watts = s.rack.gpu.power.value();
  prices.gpus = gpus;
  return prices;
}

// Every unit serves its share of the hour's lanes, the spare ones too.
std::array<HourRate, 24> rates_of_day(PlanRun& run, const Fleet& fleet) {
  const std::vector<double>& day = run.spec().load.day;
  const Scenario best = run.scenario_of(run.plan().best);
  std::map<int, std::size_t> where;
  std::vector<Scenario> scenarios;
  const auto lanes_at = [&](double lanes) { return static_cast<int>(std::ceil(lanes / fleet.all())); };
  for (const double lanes : day) {
    const int count = lanes_at(lanes);
    if (count == 0 || !where.emplace(count, scenarios.size()).second) continue;
    scenarios.push_back(best);
    scenarios.back().workload.concurrency = count;
    scenarios.back().name = fmt::format("{} lanes={}", run.deployments()[run.plan().best.deployment].scenario.name, count);
  }
  const std::vector<StoredResult> rows = run.simulate(scenarios);
  std::array<HourRate, 24> rates{};
  for (std::size_t h = 0; h < day.size(); ++h) {
    const int count = lanes_at(day[h]);
    if (count == 0) continue;
    const StoredResult& row = rows[where.at(count)];
    if (row.status != "done") throw UserError(fmt::format("load.day: {} lanes a rack did not run: {}", count, row.error));
    const Json m = Json::parse(row.metrics);
    const double scale = metric_of(m, "gpus") * day[h] / count;  // a unit's lanes are whole
    rates[h] = {scale * metric_of(m, "cached_tok_s_gpu"), scale * metric_of(m, "uncached_tok_s_gpu"), scale * metric_of(m, "output_tok_s_gpu")};
  }
  return rates;
}

Json day_json(PlanRun& run, const Fleet& fleet, const FleetPrices& prices) {
  const Scenario& s = run.deployments()[run.plan().best.deployment].scenario;
  const DayMoney day = money_of_day(rates_of_day(run, fleet), prices);
  const auto row = [](const HourMoney& m) { return Json{{"tokens", m.tokens}, {"revenue_usd", m.revenue_usd}, {"cost_usd", m.cost_usd}, {"kwh", m.kwh}}; };
  Json out = row(day.total);
  out["margin_usd"] = day.margin_usd();
  out["usd_per_mtok"] = day.usd_per_mtok();
  out["tok_per_joule"] = day.tok_per_joule();
  out["token_list"] = s.prices.list.name;
  out["token_list_source"] = s.prices.list.source;
  out["hours"] = Json::array();
  for (std::size_t h = 0; h < day.hours.size(); ++h) {
    Json hour{{"hour_utc", h}, {"lanes", run.spec().load.day[h]}, {"period", day.hours[h].peak ? "peak" : "off_peak"}};
    hour.update(row(day.hours[h]));
    out["hours"].push_back(std::move(hour));
  }
  return out;
}

}  // namespace

Json need_json(PlanRun& run) {
  const LoadNeed& load = run.spec().load;
  if (load.most() <= 0 || !run.plan().found) return nullptr;
  const PlanPoint& best = run.plan().best;
  const Scenario& s = run.deployments()[best.deployment].scenario;
  const double lanes = run.lanes(best), unit_racks = s.rack.racks, rack_gpus = s.rack.gpus;
  const Fleet fleet{std::ceil(load.most() / lanes), std::ceil(load.spare_racks / unit_racks)};
  const double racks = fleet.all() * unit_racks, gpus = racks * rack_gpus;
  const FleetPrices prices = prices_of(s, gpus);
  Json out{{"lanes", load.most()}, {"lanes_per_rack", lanes / unit_racks}, {"racks", fleet.units * unit_racks}, {"spare_racks", fleet.spare_units * unit_racks},
           {"gpus", gpus}, {"gpus_deployed", fleet.all() * s.deployment.gpus()}, {"cost_usd_hour", gpus * prices.gpu_usd_hour},
           {"gpu_price", s.prices.gpu == GpuPriceKind::owning ? "owning" : "rental"}, {"gpu_price_source", s.rack.gpu.price_source},
           {"power_kw", gpus * prices.gpu_watts / 1000}};
  // A failed rack takes its unit with it.
  const double left = fleet.all() - 1, after = left > 0 ? load.most() / left : 0;
  out["one_rack_down"] = {{"lanes_per_rack", left > 0 ? Json(after / unit_racks) : Json(nullptr)}, {"limits_hold", left > 0 && after <= lanes}};
  if (!load.day.empty()) out["day"] = day_json(run, fleet, prices);
  return out;
}

void print_need(const Json& need) {
  const auto number = [&](const char* key) { return need[key].get<double>(); };
  fmt::print("need       {:.0f} lanes: {:.0f} racks + {:.0f} spare = {:.0f} GPUs, {:.2f} USD/h ({}: {}), {:.0f} kW all-in\n", number("lanes"), number("racks"),
             number("spare_racks"), number("gpus"), number("cost_usd_hour"), need["gpu_price"].get<std::string>(), need["gpu_price_source"].get<std::string>(),
             number("power_kw"));
  const Json& down = need["one_rack_down"];
  if (down["lanes_per_rack"].is_null()) fmt::print("{:<10} with a rack down: nothing is left\n", "");
  else fmt::print("{:<10} with a rack down: {:.0f} lanes a rack, limits {}\n", "", metric_of(down, "lanes_per_rack"), down["limits_hold"].get<bool>() ? "hold" : "do not hold");
  if (!need.contains("day")) return;
  const Json& day = need["day"];
  fmt::print("{:<10} a day: {:.4g} tokens, revenue {:.0f} USD (list {}), cost {:.0f} USD, margin {:.0f} USD, {:.4f} USD/Mtok, {:.0f} kWh, {:.2f} tok/J\n", "",
             metric_of(day, "tokens"), metric_of(day, "revenue_usd"), day["token_list"].get<std::string>(), metric_of(day, "cost_usd"), metric_of(day, "margin_usd"),
             metric_of(day, "usd_per_mtok"), metric_of(day, "kwh"), metric_of(day, "tok_per_joule"));
  fmt::print("{:<10} hour UTC      lanes  period     Mtok/h   revenue USD      cost USD\n", "");
  for (const Json& hour : day["hours"])
    fmt::print("{:<10} {:>8} {:>10.0f}  {:<8} {:>8.0f} {:>13.2f} {:>13.2f}\n", "", hour["hour_utc"].get<int>(), metric_of(hour, "lanes"), hour["period"].get<std::string>(),
               metric_of(hour, "tokens") / 1e6, metric_of(hour, "revenue_usd"), metric_of(hour, "cost_usd"));
}

}  // namespace rackcast
