// Arithmetic on lists of block-id runs.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "sim/base/hash_run.hpp"

namespace rackcast {

inline std::uint32_t block_count(std::span<const HashRun> runs) {
  std::uint32_t blocks = 0;
  for (const HashRun& run : runs) blocks += run.count;
  return blocks;
}

// Blocks of the longest common prefix.
inline std::uint32_t common_prefix(std::span<const HashRun> a, std::span<const HashRun> b) {
  std::uint32_t common = 0, used_a = 0, used_b = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].first + used_a != b[j].first + used_b) break;
    const std::uint32_t step = std::min(a[i].count - used_a, b[j].count - used_b);
    common += step;
    used_a += step;
    used_b += step;
    if (used_a == a[i].count) { ++i; used_a = 0; }
    if (used_b == b[j].count) { ++j; used_b = 0; }
  }
  return common;
}

}  // namespace rackcast
