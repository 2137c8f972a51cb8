// Endless stratified ranks: every block of 4,096 draws covers (0, 1) evenly, in random order.
#pragma once
#include <algorithm>
#include <cmath>

#include "sim/trace/quantile_curve.hpp"

namespace rackcast {

class RankStream {
 public:
  explicit RankStream(NumpyRandom& random) : random_(random) {}
  double next() {
    if (at_ == ranks_.size()) {
      ranks_ = stratified_ranks(block, random_);
      at_ = 0;
    }
    return ranks_[at_++];
  }
  // A rank whose normal score has correlation `likeness` with `level`, itself a normal score.
  double next_like(double level, double likeness) {
    const double own = normal_quantile(std::clamp(next(), 1e-12, 1 - 1e-12));
    const double score = likeness * level + std::sqrt(1 - likeness * likeness) * own;
    return 0.5 * std::erfc(-score / std::sqrt(2.0));
  }

 private:
  static constexpr std::size_t block = 4096;
  NumpyRandom& random_;
  std::vector<double> ranks_;
  std::size_t at_ = 0;
};

}  // namespace rackcast
