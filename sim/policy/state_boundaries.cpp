#include "sim/policy/state_boundaries.hpp"

#include <algorithm>

namespace rackcast {

void StateBoundaries::prompt_ended(std::uint32_t play, std::span<const HashRun> runs) {
  if (everywhere() || runs.empty()) return;
  const std::uint64_t end = key(play, runs.back().first + runs.back().count - 1);
  if (!ends_.insert(end).second) return;
  by_age_.push_back(end);
  if (by_age_.size() <= most_ends) return;
  ends_.erase(by_age_.front());
  by_age_.pop_front();
}

std::uint32_t StateBoundaries::usable(std::uint32_t play, std::span<const HashRun> runs, std::uint32_t matched, std::uint32_t block_tokens) const {
  if (everywhere()) return matched;
  const std::uint32_t interval_blocks = static_cast<std::uint32_t>(std::clamp<std::int64_t>(interval_ / block_tokens, 1, 0xffffffff));
  std::uint32_t best = matched / interval_blocks * interval_blocks, before = 0;
  for (const HashRun& run : runs) {
    if (before >= matched) break;
    const std::uint32_t last = run.first + std::min(run.count, matched - before) - 1;
    const auto after = ends_.upper_bound(key(play, last));
    if (after != ends_.begin() && *std::prev(after) >= key(play, run.first))
      best = std::max(best, before + static_cast<std::uint32_t>(*std::prev(after)) - run.first + 1);
    before += run.count;
  }
  return best;
}

}  // namespace rackcast
