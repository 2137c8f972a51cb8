#include "sim/policy/speculation.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/mix.hpp"

namespace rackcast {

namespace {

// SplitMix64: one multiply-xorshift chain per draw, any seed is good.
struct Draws {
  std::uint64_t state;
  std::uint64_t next() {
    return mixed(state += golden_step);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double normal() {  // Box-Muller, one half
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * 3.14159265358979323846 * uniform());
  }
};

// The constant rate a with 1 + a + a^2 + ... + a^k = length, by bisection (monotone in a).
double constant_rate(int positions, double length) {
  double low = 0, high = 1;
  for (int round = 0; round < 60; ++round) {
    const double a = 0.5 * (low + high);
    double sum = 1, product = 1;
    for (int i = 0; i < positions; ++i) sum += product *= a;
    (sum < length ? low : high) = a;
  }
  return 0.5 * (low + high);
}

}  // namespace

Acceptance::Acceptance(int draft_tokens, double acceptance_length, std::span<const double> per_position) {
  if (draft_tokens <= 0) return;
  const double rate = per_position.empty() ? constant_rate(draft_tokens, acceptance_length) : 0;
  double product = 1, second_moment = 1;
  for (int i = 0; i < draft_tokens; ++i) {
    const std::size_t position = static_cast<std::size_t>(i);
    product *= per_position.empty() ? rate : (position < per_position.size() ? per_position[position] : 0.0);
    at_least_.push_back(product);
    mean_ += product;
    second_moment += product * (2.0 * (i + 1) + 1.0);  // E[X^2] = sum of P(X > i) (2i + 1)
  }
  variance_ = std::max(0.0, second_moment - mean_ * mean_);
}

double Acceptance::kept(int drafts) const {
  double sum = 1;
  for (int i = 0; i < drafts; ++i) sum += at_least_[static_cast<std::size_t>(i)];
  return sum;
}

std::uint32_t Acceptance::steps_for(std::uint32_t tokens, std::uint64_t seed) const {
  if (at_least_.empty()) return tokens;
  Draws draws{seed};
  std::uint32_t steps = 0;
  double kept = 0;
  constexpr double shortest_bulk = 48;  // tokens; below, every step is drawn
  if (tokens > shortest_bulk) {
    // Bulk of m steps that ends, but for 1 in 10^9, before the last token.
    const double wanted = tokens;
    const double spread = std::sqrt(variance_ / mean_ * wanted);
    const double bulk = std::floor((wanted - 6.0 * spread) / mean_);
    if (bulk >= 16) {
      const double sum = std::round(bulk * mean_ + std::sqrt(bulk * variance_) * draws.normal());
      kept = std::clamp(sum, bulk, std::min(bulk * static_cast<double>(at_least_.size() + 1), wanted - 1.0));
      steps = static_cast<std::uint32_t>(bulk);
    }
  }
  while (kept < tokens) {
    const double u = draws.uniform();
    std::uint32_t accepted = 0;
    for (const double probability : at_least_) accepted += u < probability;  // they fall, so this counts up to the first miss
    kept += 1 + accepted;
    ++steps;
  }
  return steps;
}

}  // namespace rackcast
