#include "sim/base/stats.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/error.hpp"

namespace rackcast {

namespace {

struct Position {
  std::size_t below = 0;
  double share = 0;  // of the way to the next value
};

Position position_of(std::size_t count, double q) {
  RACKCAST_CHECK(q >= 0 && q <= 100, "a percentile outside 0 to 100");
  const double exact = q / 100 * static_cast<double>(count - 1);
  const auto below = std::min(static_cast<std::size_t>(exact), count - 1);
  return {below, exact - static_cast<double>(below)};
}

// As numpy: from the nearer end, so that equal neighbours give exactly themselves.
double between(double low, double high, double share) {
  return share >= 0.5 ? high - (high - low) * (1 - share) : low + (high - low) * share;
}

}  // namespace

double percentile_of_sorted(std::span<const double> sorted, double q) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const Position at = position_of(sorted.size(), q);
  return at.share == 0 ? sorted[at.below] : between(sorted[at.below], sorted[at.below + 1], at.share);
}

double percentile(std::vector<double>& values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const Position at = position_of(values.size(), q);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(at.below);
  std::nth_element(values.begin(), middle, values.end());
  return at.share == 0 ? *middle : between(*middle, *std::min_element(middle + 1, values.end()), at.share);
}

}  // namespace rackcast
