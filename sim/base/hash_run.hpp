// Prompt blocks as runs, shared by traces (which give them) and cache policies (which look them up).
#pragma once
#include <cstdint>

namespace rackcast {

// `count` consecutive block ids from `first`. An id names a block *and* its whole prefix (trie node), so that equal
// ids of one play mean equal prompts up to and including that block.
struct HashRun {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

}  // namespace rackcast
