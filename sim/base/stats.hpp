// Percentiles as numpy's default (linear interpolation), running mean and variance.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace rackcast {

// q in [0, 100]; NaN for an empty span. `sorted` must be ascending.
double percentile_of_sorted(std::span<const double> sorted, double q);

// Reorders values; O(n). The same number as percentile_of_sorted.
double percentile(std::vector<double>& values, double q);

// Welford (1962): no catastrophic cancellation, one pass.
class RunningStats {
 public:
  void add(double value) {
    count_ += 1;
    const double delta = value - mean_;
    mean_ += delta / static_cast<double>(count_);
    squares_ += delta * (value - mean_);
  }
  std::size_t count() const { return count_; }
  double mean() const { return mean_; }
  double variance() const { return count_ > 1 ? squares_ / static_cast<double>(count_ - 1) : 0; }  // of a sample

 private:
  std::size_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

}  // namespace rackcast
