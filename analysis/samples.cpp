#include "analysis/samples.hpp"

#include <algorithm>
#include <cmath>

namespace rackcast {

namespace {

constexpr double least = 1e-7, most = 1e7;  // seconds; what lies outside counts as the end
constexpr double width = 1e-4;              // of a bucket, in natural logarithm

}  // namespace

std::size_t Samples::bucket_of(double value) {
  return static_cast<std::size_t>(std::log(std::clamp(value, least, most) / least) / width);
}

void Samples::add(double value) {
  ++count_;
  sum_ += value;
  if (!buckets_.empty()) {
    ++buckets_[bucket_of(value)];
    return;
  }
  values_.push_back(value);
  sorted_ = false;
  if (values_.size() >= exact_limit) to_buckets();
}

void Samples::to_buckets() {
  buckets_.assign(bucket_of(most) + 1, 0);
  for (const double value : values_) ++buckets_[bucket_of(value)];
  values_ = {};
}

double Samples::percentile(double share) const {
  if (count_ == 0) return 0;
  const double rank = share * static_cast<double>(count_ - 1);
  if (buckets_.empty()) {
    if (!sorted_) std::sort(values_.begin(), values_.end());
    sorted_ = true;
    const auto below = static_cast<std::size_t>(rank);
    const std::size_t above = std::min(below + 1, values_.size() - 1);
    const double part = rank - static_cast<double>(below);
    return values_[below] + part * (values_[above] - values_[below]);
  }
  double seen = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    seen += buckets_[b];
    if (seen > rank) return least * std::exp((static_cast<double>(b) + 0.5) * width);
  }
  return most;
}

}  // namespace rackcast
