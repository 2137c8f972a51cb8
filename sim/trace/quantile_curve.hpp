// A positive distribution given by some of its percentiles: between two of them it is log-normal. Sampled by rank, so
// that stratified ranks give every seed nearly the same distribution, tails included.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "sim/base/numpy_random.hpp"

namespace rackcast {

class QuantileCurve {
 public:
  struct Knot {
    double share;  // of the distribution at or below `value`; rises from 0 to 1
    double value;  // positive
  };
  QuantileCurve() = default;
  QuantileCurve(std::initializer_list<Knot> knots) : QuantileCurve(std::vector<Knot>(knots)) {}
  explicit QuantileCurve(std::vector<Knot> knots);
  // Percentiles of samples, at the usual shares; values below `floor` are lifted to it.
  static QuantileCurve of(std::vector<double> samples, double floor);

  double at(double share) const;  // 0 <= share <= 1
  bool empty() const { return knots_.empty(); }
  const std::vector<Knot>& knots() const { return knots_; }

 private:
  std::vector<Knot> knots_;
  std::vector<double> places_;  // normal quantiles of the shares, ends cut to +-3.5
};

// n ranks in (0, 1), one in each of n equal strata, in random order. `width` is the part of a stratum they may fall in,
// around its middle: less than 1 steadies the largest value of a heavy tail.
std::vector<double> stratified_ranks(std::size_t n, NumpyRandom& random, double width = 1);
// The same set of ranks, ordered so that its rank correlation with `like` is about `correlation`.
std::vector<double> correlated_ranks(const std::vector<double>& like, double correlation, NumpyRandom& random);

}  // namespace rackcast
