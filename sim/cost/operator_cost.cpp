// What the rows of a step's operators say, and what they add up to: time, time by basis, time outside the range of the cost
// file's points.
#include <fmt/core.h>

#include <algorithm>

#include "sim/cost/step_model.hpp"

namespace rackcast {

std::string OperatorCost::title() const { return (of_draft ? "draft " : "") + std::string(name); }
std::string OperatorCost::shape_text() const { return fmt::format("{:.0f} {}{}", count, shape, exact ? ", exact" : ""); }

double seconds_of(std::span<const OperatorCost> operators) {
  double sum = 0;
  for (const OperatorCost& row : operators) sum += row.time_s;
  return sum;
}

void add_outside(RangeTally& tally, std::span<const OperatorCost> operators, double seconds) {
  double taken = 0;
  for (const OperatorCost& row : operators) taken += std::max(0.0, row.time_s);
  if (taken <= 0) return;
  for (const OperatorCost& row : operators) tally.add(row.family, row.outside, seconds * std::max(0.0, row.time_s) / taken);
}

void BasisShare::add(std::span<const OperatorCost> operators, double seconds) {
  const double sum = seconds_of(operators);
  if (sum <= 0) return;
  double* const shares[] = {&measured, &published, &transferred, &assumed};
  for (const OperatorCost& row : operators)
    *shares[static_cast<int>(row.basis)] += row.time_s / sum * seconds;
}

}  // namespace rackcast
