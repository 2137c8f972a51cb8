#include "sim/trace/ideal_cache.hpp"

#include <algorithm>

namespace rackcast {

std::uint32_t IdealCache::add(std::span<const HashRun> runs) {
  std::uint32_t hit = 0;
  bool unbroken = true;
  for (const HashRun& run : runs) {
    if (run.count == 0) continue;
    const std::uint32_t end = run.first + run.count;
    auto after = seen_.upper_bound(run.first);  // first interval that starts beyond run.first
    auto at = after == seen_.begin() ? seen_.end() : std::prev(after);
    const std::uint32_t held_until = at != seen_.end() && at->second > run.first ? std::min(at->second, end) : run.first;
    if (unbroken) hit += held_until - run.first;
    if (held_until == end) continue;
    unbroken = false;
    // Merge [run.first, end) with every interval that it touches.
    std::uint32_t first = run.first, last = end;
    if (at != seen_.end() && at->second >= run.first) {
      first = at->first;
      blocks_ -= at->second - at->first;
      last = std::max(last, at->second);
      after = seen_.erase(at);
    }
    while (after != seen_.end() && after->first <= last) {
      blocks_ -= after->second - after->first;
      last = std::max(last, after->second);
      after = seen_.erase(after);
    }
    seen_.emplace_hint(after, first, last);
    blocks_ += last - first;
  }
  return hit;
}

bool IdealCache::touches(std::span<const HashRun> runs) const {
  for (const HashRun& run : runs) {
    const auto after = seen_.lower_bound(run.first + run.count);  // first interval at or beyond the run's end
    if (after != seen_.begin() && std::prev(after)->second > run.first) return true;
  }
  return false;
}

}  // namespace rackcast
