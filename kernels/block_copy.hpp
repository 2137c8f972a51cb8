// Copies many blocks by one kernel: block i from source + from[i] to destination + to[i]. Addresses may be another
// GPU's or pinned host memory. CUDA code only.
#pragma once
#include <cstdint>

#include "kernels/device.hpp"

namespace rackcast::kernels {

struct BlockList {
  const int64_t* from = nullptr;  // device memory; null: block i at i * block_bytes
  const int64_t* to = nullptr;
  int64_t blocks = 0;
  int64_t block_bytes = 0;  // multiple of 16
};
void launch_block_copy(const BlockList& list, const char* source, char* destination, int ctas, Stream stream);
// Adds the number of unlike 16-byte words between source block i and destination block i to *found.
void launch_block_compare(const BlockList& list, const char* source, const char* destination, unsigned long long* found, Stream stream);
void load_block_kernels();

}  // namespace rackcast::kernels
