// The frame of the index kernels on Hopper. Keys are the 64 rows of a product, (token, head) its columns, K = 128 in four steps.
// All tiles of 64 keys of all column groups form one line that the CTAs share evenly; a CTA keeps a group's queries in
// shared memory while keys stream through a ring. Warpgroup 2 copies keys, warpgroups 0 and 1 multiply and weigh.
// Keys is how one format of keys does that: stages; stage_bytes; two functions of a whole stretch of the line,
// copy<columns>() and weigh<columns, heads>().
#pragma once
#include "kernels/device.hpp"
#include "kernels/hopper.cuh"
#include "kernels/indexer_kernels.hpp"

namespace rackcast::kernels {

constexpr int index_tile_keys = 64;

struct IndexLine {  // the line of tiles: group-major
  int tokens_per_group, groups_per_request, tiles_per_group;
  __host__ __device__ std::int64_t tiles(int requests) const { return static_cast<std::int64_t>(tiles_per_group) * groups_per_request * requests; }
};

// Shared memory of a CTA. A stage has two barriers, full and empty.
template <typename Keys, int columns>
struct IndexShared {
  static constexpr int query = 0;
  static constexpr int keys = columns * index_dims < 8192 ? 8192 : columns * index_dims;
  static constexpr int barriers = keys + Keys::stages * Keys::stage_bytes;
  static constexpr int bytes = barriers + Keys::stages * 16 + 1024;
};

template <typename Keys, int columns, int heads>
__global__ void __launch_bounds__(384, 1) index_kernel(const __grid_constant__ IndexerParams p, const __grid_constant__ IndexLine line) {
#if RACKCAST_HAVE_WGMMA
  using Shared = IndexShared<Keys, columns>;
  extern __shared__ std::uint8_t shared_memory[];
  const std::uint32_t base = (shared_address(shared_memory) + 1023u) & ~1023u;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Keys::stages; ++stage) {
      mbarrier_init(base + Shared::barriers + stage * 16, 128);
      mbarrier_init(base + Shared::barriers + stage * 16 + 8, 4);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  const std::int64_t total = line.tiles(p.requests);
  const std::int64_t first = total * blockIdx.x / gridDim.x, last = total * (blockIdx.x + 1) / gridDim.x;
  const int warpgroup = threadIdx.x >> 7;
  if (warpgroup == 2) {
    registers_down<40>();
    Keys::template copy<columns>(p, line, base, first, last);
  } else {
    registers_up<232>();
    Keys::template weigh<columns, heads>(p, line, base, first, last, warpgroup);
  }
#else
  __trap();
#endif
}

template <typename Keys, int columns, int heads>
void launch_index(const IndexerParams& params, int sm_count, Stream stream) {
  constexpr int bytes = IndexShared<Keys, columns>::bytes;
  static const cudaError_t prepared = cudaFuncSetAttribute(index_kernel<Keys, columns, heads>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  RACKCAST_CUDA_CHECK(prepared);
  const int tokens = params.blocks ? 1 : columns / heads;
  const IndexLine line{tokens, (params.query_tokens + tokens - 1) / tokens, (params.key_count + index_tile_keys - 1) / index_tile_keys};
  const std::int64_t total = line.tiles(params.requests);
  index_kernel<Keys, columns, heads><<<static_cast<unsigned>(total < sm_count ? total : sm_count), 384, bytes, stream>>>(params, line);
  RACKCAST_LAUNCH_CHECK();
}

}  // namespace rackcast::kernels
