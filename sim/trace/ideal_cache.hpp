// A prefix cache that never forgets, over runs of block ids: what the best cache could have held. An id names its whole
// prefix, so "seen" is closed under prefixes and the hit is the part of a request before its first unseen block.
#pragma once
#include <cstdint>
#include <map>
#include <span>

#include "sim/trace/trace.hpp"

namespace rackcast {

class IdealCache {
 public:
  std::uint32_t add(std::span<const HashRun> runs);  // blocks held before; all are held after
  bool touches(std::span<const HashRun> runs) const; // any block of them is held
  std::uint64_t blocks() const { return blocks_; }   // distinct blocks seen

 private:
  std::map<std::uint32_t, std::uint32_t> seen_;  // disjoint, non-adjacent [first, end)
  std::uint64_t blocks_ = 0;
};

}  // namespace rackcast
