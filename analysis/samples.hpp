// A stream of positive samples that gives mean and percentiles in bounded memory: exact (linear interpolation) up to
// `exact_limit` samples, then in buckets 0.01% wide, so that however long a run is, it needs no more memory.
#pragma once
#include <cstdint>
#include <vector>

namespace rackcast {

class Samples {
 public:
  static constexpr std::size_t exact_limit = std::size_t{1} << 18;

  void add(double value);
  std::uint64_t count() const { return count_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  double percentile(double share) const;  // share in [0, 1]; 0 without samples
  bool exact() const { return buckets_.empty(); }

 private:
  static std::size_t bucket_of(double value);
  void to_buckets();

  std::uint64_t count_ = 0;
  double sum_ = 0;
  mutable std::vector<double> values_;   // exact mode; sorted on demand
  mutable bool sorted_ = false;
  std::vector<std::uint32_t> buckets_;
};

}  // namespace rackcast
