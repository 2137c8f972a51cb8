// The closed forms that turn work into time. Work is flops and bytes of one launch; seconds come out.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>

#include "sim/cost/costs.hpp"

namespace rackcast {

// (a^p + b^p)^(1/p): 1 adds, large p takes the larger. The powers that the hot path meets are spelled out.
inline double p_norm(double a, double b, double p) {
  if (a <= 0) return b;
  if (b <= 0) return a;
  if (p == 1) return a + b;
  if (p == 2) return std::sqrt(a * a + b * b);
  if (p == 8) {
    const double a2 = a * a, b2 = b * b, a4 = a2 * a2, b4 = b2 * b2;
    return std::sqrt(std::sqrt(std::sqrt(a4 * a4 + b4 * b4)));
  }
  const double larger = a > b ? a : b;
  const double ratio = (a > b ? b : a) / larger;
  return larger * std::pow(1 + std::pow(ratio, p), 1 / p);
}

// p_norm for one p, and a number just above it that costs no power: (1 + x^p)^(1/p) is convex in x, so its chords lie
// above it. For finding the largest of many norms without computing all of them.
class PNorm {
 public:
  explicit PNorm(double p) : p_(p), cheap_(p == 1 || p == 2 || p == 8) {
    for (std::size_t i = 0; i <= chords; ++i) at_[i] = p_norm(1, static_cast<double>(i) / chords, p) * (1 + 1e-12);
  }
  double operator()(double a, double b) const { return p_norm(a, b, p_); }
  double p() const { return p_; }
  bool cheap() const { return cheap_; }  // above() is exact
  double above(double a, double b) const {
    if (cheap_ || a <= 0 || b <= 0) return p_norm(a, b, p_);
    const double larger = a > b ? a : b, x = (a > b ? b : a) / larger * chords;
    const auto i = static_cast<std::size_t>(x);
    return i >= chords ? larger * at_[chords] : larger * (at_[i] + (x - static_cast<double>(i)) * (at_[i + 1] - at_[i]));
  }

 private:
  static constexpr std::size_t chords = 256;
  double p_;
  bool cheap_;
  std::array<double, chords + 1> at_{};
};

// t0 + ((flops/F)^p + (bytes/B)^p)^(1/p)
struct Roofline {
  double t0_s = 0;
  double flops_per_s = 1;
  double bytes_per_s = 1;
  double p = 1;
  Basis basis = Basis::measured;  // the weakest of its parameters

  double seconds(double flops, double bytes) const {
    return t0_s + p_norm(flops / flops_per_s, bytes / bytes_per_s, p);
  }
};

// The parameters of one model on one GPU; keeps the weakest basis of what it hands out.
class ParameterReader {
 public:
  ParameterReader(const CostSpec& costs, std::string model) : costs_(costs), model_(std::move(model)) {}
  double value(const std::string& family, const std::string& parameter);
  double value_or(const std::string& family, const std::string& parameter, double otherwise);
  bool has(const std::string& family) const { return costs_.has(family, model_); }
  const std::string& form(const std::string& family) const { return costs_.form(family, model_); }
  const CostRange* range(const std::string& family) const;
  Basis take_basis();  // weakest since the last call
  Roofline roofline(const std::string& family);  // t0_us, mma_tflops, hbm_gbs, p
  Roofline stream(const std::string& family);    // t0_us, hbm_gbs

 private:
  const CostSpec& costs_;
  std::string model_;
  Basis weakest_ = Basis::measured;
};

}  // namespace rackcast
