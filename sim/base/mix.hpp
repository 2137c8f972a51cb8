// The finisher of SplitMix64 (Steele et al. 2014): a number whose bits have nothing in common with its neighbours'.
#pragma once
#include <cstdint>

namespace rackcast {

constexpr std::uint64_t golden_step = 0x9e3779b97f4a7c15ULL;  // between the numbers that SplitMix64 mixes

constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace rackcast
