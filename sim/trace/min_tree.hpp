// The smallest of n times, each of which may change: a tournament tree. The lowest index wins ties, so that order never
// depends on history.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace rackcast {

class MinTree {
 public:
  explicit MinTree(std::uint32_t size)
      : leaves_(std::bit_ceil(size == 0 ? 1U : size)), value_(leaves_, std::numeric_limits<double>::infinity()), winner_(leaves_, 0) {
    for (std::uint32_t node = leaves_ - 1; node > 0; --node) winner_[node] = left_winner(node);
  }

  double value(std::uint32_t index) const { return value_[index]; }
  std::uint32_t lowest() const { return leaves_ == 1 ? 0 : winner_[1]; }
  double min() const { return value_[lowest()]; }

  void set(std::uint32_t index, double value) {
    value_[index] = value;
    for (std::uint32_t node = (leaves_ + index) / 2; node > 0; node /= 2) {
      const std::uint32_t a = left_winner(node), b = right_winner(node);
      winner_[node] = value_[b] < value_[a] ? b : a;
    }
  }

 private:
  // Children of the lowest inner nodes are the leaves themselves.
  std::uint32_t at(std::uint32_t node) const { return node >= leaves_ ? node - leaves_ : winner_[node]; }
  std::uint32_t left_winner(std::uint32_t node) const { return at(2 * node); }
  std::uint32_t right_winner(std::uint32_t node) const { return at(2 * node + 1); }

  std::uint32_t leaves_;
  std::vector<double> value_;
  std::vector<std::uint32_t> winner_;  // by inner node; node 1 is the root
};

}  // namespace rackcast
