#include "calib/stopping_rule.hpp"

#include <algorithm>
#include <cmath>

namespace rackcast::calib {
namespace {

double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const std::size_t below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Summary summarise(std::vector<double> samples) {
  Summary s;
  s.count = samples.size();
  if (samples.empty()) return s;
  std::sort(samples.begin(), samples.end());
  s.median = quantile(samples, 0.5);
  s.p10 = quantile(samples, 0.1);
  s.p90 = quantile(samples, 0.9);
  s.min = samples.front();
  for (double& sample : samples) sample = std::abs(sample - s.median);
  std::sort(samples.begin(), samples.end());
  s.mad = quantile(samples, 0.5);
  return s;
}

void StoppingRule::add(double sample_us, double elapsed_s) {
  samples_.push_back(sample_us);
  elapsed_s_ += elapsed_s;
}

double StoppingRule::relative_half_width() const {
  const std::size_t n = samples_.size();
  if (n < 6) return 1;  // below six samples no pair of order statistics bounds the median with 95%
  std::vector<double> sorted = samples_;
  std::sort(sorted.begin(), sorted.end());
  // Binomial(n, 1/2) within n/2 +- 0.98 sqrt(n) holds 95%.
  const double half = 0.98 * std::sqrt(static_cast<double>(n));
  const double middle = static_cast<double>(n) / 2;
  const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(middle - half)));
  const auto high = std::min(n - 1, static_cast<std::size_t>(std::ceil(middle + half)));
  const double median = quantile(sorted, 0.5);
  return median > 0 ? (sorted[high] - sorted[low]) / (2 * median) : 1;
}

bool StoppingRule::done() const {
  if (samples_.size() < limits_.min_samples) return false;
  if (samples_.size() >= limits_.max_samples || elapsed_s_ >= limits_.max_seconds) return true;
  return relative_half_width() <= limits_.relative_half_width;
}

}  // namespace rackcast::calib
