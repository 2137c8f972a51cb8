// Family kv_push: movement of KV blocks, each a descriptor (source place, destination place, bytes).
//   path       copy (one copy call a descriptor), batch (cudaMemcpyBatchAsync), kernel (a gather/scatter kernel), staged
//              (packed, one copy, unpacked by the receiver)
//   direction  push or pull between rank 0 and rank 1; to_host, from_host: pinned memory of this node; local: one GPU
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/family.hpp"

namespace rackcast::kernels {

// Where the blocks lie: distinct places of a buffer with twice as many places as blocks (as many, when that would be more
// than the buffer may be), in random order. Offsets in bytes.
struct BlockPlaces {
  std::vector<int64_t> offset;
  int64_t buffer_bytes = 0;
};
BlockPlaces draw_places(int64_t block_bytes, int64_t blocks, int64_t buffer_bytes_max, uint64_t seed);

}  // namespace rackcast::kernels
