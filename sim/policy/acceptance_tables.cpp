#include "sim/policy/acceptance_tables.hpp"

#include <algorithm>
#include <cmath>

namespace rackcast {

// SPEED-Bench coding at temperature 1, as SemiAnalysisAI/InferenceX publishes them (golden_al_distribution; PRs #3036, #3246).
std::span<const AcceptanceTable> acceptance_tables() {
  static const std::vector<AcceptanceTable> tables = {
      {"v4.1-flash-dspark", "V4.1-Flash, DSpark, thinking on: 3.51 with 5", {0, 0, 0, 0, 3.51}},
      {"v4-pro-dspark", "V4-Pro, DSpark, thinking on", {1.86, 2.55, 3.08, 3.43, 3.74, 3.82, 3.86, 3.75}},
      {"v4-pro-dspark-no-thinking", "V4-Pro, DSpark, thinking off", {1.93, 2.76, 3.47, 4.10, 4.52, 4.87, 4.94, 4.94}},
      {"v4-pro-0813-dspark", "V4-Pro-0813, DSpark, thinking on", {1.84, 2.51, 3.01, 3.36, 3.61, 3.77, 3.73, 3.47}},
      {"v4-pro-mtp", "V4-Pro, MTP head used again and again, thinking on", {1.79, 2.27, 2.49, 2.54, 2.55, 2.55, 2.54, 2.58}},
      {"v4-pro-mtp-no-thinking", "V4-Pro, MTP, thinking off", {1.92, 2.61, 2.97, 3.00, 3.10, 3.16, 3.00, 3.11}},
      {"v4-flash-0731-dspark", "V4-Flash-0731, DSpark with 5: kept at 0.579, 0.447, 0.316, 0.237, 0.158 of the positions (issue reports)",
       {1.579, 2.026, 2.342, 2.579, 2.737}}};
  return tables;
}

std::vector<double> acceptance_of(const AcceptanceTable& table, int draft_tokens) {
  const auto k = static_cast<std::size_t>(std::max(0, draft_tokens));
  if (k == 0 || k > table.lengths.size() || table.lengths[k - 1] <= 0) return {};
  const double drafted = table.lengths[k - 1] - 1;  // of them that are kept
  std::vector<double> reached(k, 0);                 // that position i is kept, whatever came before
  double sum = 0, last = 1, before = 1;
  for (std::size_t i = 0; i < k; ++i) {
    if (table.lengths[i] <= 0) break;
    reached[i] = std::clamp(table.lengths[i] - before, 0.0, last);
    before = std::max(before, table.lengths[i]);
    sum += last = reached[i];
  }
  if (sum <= 0 || std::count(reached.begin(), reached.end(), 0.0) > static_cast<long>(k / 2)) {
    // Only some lengths are known: one rate for all positions, by bisection.
    double low = 0, high = 1;
    for (int round = 0; round < 60; ++round) {
      const double rate = 0.5 * (low + high);
      double kept = 0, product = 1;
      for (std::size_t i = 0; i < k; ++i) kept += product *= rate;
      (kept < drafted ? low : high) = rate;
    }
    return std::vector<double>(k, low);
  }
  std::vector<double> rates(k, 0);
  double previous = 1;
  for (std::size_t i = 0; i < k; ++i) {
    const double share = std::min(previous, reached[i] * drafted / sum);
    rates[i] = previous > 0 ? share / previous : 0;
    previous = share;
  }
  return rates;
}

}  // namespace rackcast
