#include "sim/base/numpy_random.hpp"

#include <array>
#include <bit>
#include <cmath>

namespace rackcast {
namespace {

constexpr int pool_words = 4;

// numpy.random.SeedSequence(seed).generate_state(8), after M. E. O'Neill's seed_seq_fe.
std::array<std::uint32_t, 8> seed_words(std::uint64_t seed) {
  std::uint32_t hash = 0x43b0d7e5;
  const auto hashed = [&hash](std::uint32_t value) {
    value ^= hash;
    hash *= 0x931e8875;
    value *= hash;
    return value ^ (value >> 16);
  };
  const std::array<std::uint32_t, pool_words> entropy = {static_cast<std::uint32_t>(seed),
                                                         static_cast<std::uint32_t>(seed >> 32), 0, 0};
  std::array<std::uint32_t, pool_words> pool{};
  for (std::size_t i = 0; i < pool_words; ++i) pool[i] = hashed(entropy[i]);
  for (std::size_t from = 0; from < pool_words; ++from)
    for (std::size_t to = 0; to < pool_words; ++to) {
      if (from == to) continue;
      const std::uint32_t mixed = 0xca01f9ddU * pool[to] - 0x4973f715U * hashed(pool[from]);
      pool[to] = mixed ^ (mixed >> 16);
    }
  std::array<std::uint32_t, 8> state{};
  std::uint32_t out_hash = 0x8b51f9dd;
  for (std::size_t i = 0; i < state.size(); ++i) {
    std::uint32_t value = pool[i % pool_words] ^ out_hash;
    out_hash *= 0x58f38ded;
    value *= out_hash;
    state[i] = value ^ (value >> 16);
  }
  return state;
}

}  // namespace

NumpyRandom::NumpyRandom(std::uint64_t seed) {
  const auto words = seed_words(seed);
  const auto wide = [&words](std::size_t at) {
    const auto long_word = [&words](std::size_t i) { return words[i] | (std::uint64_t{words[i + 1]} << 32); };
    return (Wide{long_word(at)} << 64) | long_word(at + 2);
  };
  const Wide start = wide(0);
  increment_ = (wide(4) << 1) | 1;
  next();
  state_ += start;
  next();
}

std::uint64_t NumpyRandom::next() {
  constexpr Wide multiplier = (Wide{0x2360ED051FC65DA4} << 64) | 0x4385DF649FCCF645;
  state_ = state_ * multiplier + increment_;
  const std::uint64_t folded = static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122));
}

std::uint64_t NumpyRandom::below(std::uint64_t n) { return static_cast<std::uint64_t>((Wide{next()} * n) >> 64); }

double NumpyRandom::normal() { return normal_quantile((static_cast<double>(next() >> 11) + 0.5) * 0x1.0p-53); }

double normal_quantile(double p) {
  constexpr double edge = 0.02425;
  if (p > 0.5) return -normal_quantile(1 - p);
  if (p < edge) {
    const double q = std::sqrt(-2 * std::log(p));
    return (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q -
              2.549732539343734e+00) * q + 4.374664141464968e+00) * q + 2.938163982698783e+00) /
           ((((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q +
             3.754408661907416e+00) * q + 1);
  }
  const double q = p - 0.5, r = q * q;
  return (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
            1.383577518672690e+02) * r - 3.066479806614716e+01) * r + 2.506628277459239e+00) * q /
         (((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
            6.680131188771972e+01) * r - 1.328068155288572e+01) * r + 1);
}

}  // namespace rackcast
