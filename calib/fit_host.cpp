#include "calib/fit_host.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace rackcast::calib {

void describe_host(CostFit& fit, const std::vector<FitPoint>& points, int hidden_steps) {
  if (!fit.costs.find("host", "h0_us", "") || !fit.costs.find("host", "h1_us", "")) return;
  CostFamily& family = fit.costs.families["host"];
  CostParameter& h0 = family.parameters["h0_us"];
  const double h1_us = family.parameters["h1_us"].value;
  std::vector<double> beyond_us;  // of h0 + h1 requests, which runs through the middle of the steps
  std::string source;
  for (const FitPoint& p : points) {
    if (p.family != "host" || p.gpu != fit.costs.gpu) continue;
    beyond_us.push_back(p.time_s * 1e6 - h0.value - h1_us * p.units);
    source = p.source;
  }
  constexpr std::size_t fewest = 20;  // a 90th percentile of less says nothing
  if (beyond_us.size() < fewest) return;
  std::sort(beyond_us.begin(), beyond_us.end());
  const auto at = [&](double share) { return beyond_us[static_cast<std::size_t>(share * static_cast<double>(beyond_us.size() - 1))]; };
  // Percentile x of an exponential delay is mean ln(1/(1-x)).
  const auto mean_of = [&](double share) { return std::max(0.0, (at(share) - at(0.5)) / (std::log(1 / (1 - share)) - std::log(2.0))); };
  const double jitter_us = mean_of(0.9), low = mean_of(0.85), high = mean_of(0.95);
  const double steps = static_cast<double>(beyond_us.size()) + hidden_steps, overlap = hidden_steps / steps;
  const std::string text = fmt::format("{} steps of {}", static_cast<int>(steps), source);
  family.parameters["jitter_us"] = {jitter_us, std::min({low, jitter_us, high}), std::max({low, jitter_us, high}), Basis::measured, text};
  family.parameters["overlap"] = {overlap, overlap, overlap, Basis::measured, text};
  const double median_us = std::log(2.0) * jitter_us;
  for (double* value : {&h0.value, &h0.lo, &h0.hi}) *value = std::max(0.0, *value - median_us);
}

}  // namespace rackcast::calib
