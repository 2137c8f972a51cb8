// Where a prompt can go on from cached blocks in models with windows: the states of window and compressor are kept at the
// ends of earlier prompts and at multiples of an interval only (vLLM's --prefix-cache-retention-interval, its pull #43447).
#pragma once
#include <cstdint>
#include <deque>
#include <set>
#include <span>

#include "sim/base/hash_run.hpp"

namespace rackcast {

class StateBoundaries {
 public:
  static constexpr std::size_t most_ends = std::size_t{1} << 18;  // beyond it the first ends are forgotten

  explicit StateBoundaries(std::int64_t interval_tokens) : interval_(interval_tokens) {}  // 0: any block is one
  bool everywhere() const { return interval_ == 0; }
  void prompt_ended(std::uint32_t play, std::span<const HashRun> runs);
  // The last boundary among the first `matched` blocks of the path, as a number of blocks.
  std::uint32_t usable(std::uint32_t play, std::span<const HashRun> runs, std::uint32_t matched, std::uint32_t block_tokens) const;

 private:
  static std::uint64_t key(std::uint32_t play, std::uint32_t block) { return std::uint64_t{play} << 32 | block; }

  std::int64_t interval_;
  std::set<std::uint64_t> ends_;        // last blocks of prompts
  std::deque<std::uint64_t> by_age_;
};

}  // namespace rackcast
