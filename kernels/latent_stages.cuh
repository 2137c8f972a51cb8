// Where the Hopper attention kernel keeps what in shared memory, and in which order its producers and consumers go through
// blocks of KV rows. A block of 64 rows has one of two buffers and arrives in two stages of 32 rows.
#pragma once
#include "kernels/hopper.cuh"
#include "kernels/latent_kv.cuh"

namespace rackcast::kernels {

constexpr int stage_rows = 32;
constexpr int stages = 4;  // two a block

template <int qk_tiles>
struct LatentShared {
  static constexpr int buffer_bytes = qk_tiles * tile_bytes;
  static constexpr int query = 0;
  static constexpr int keys = buffer_bytes;                      // two buffers
  static constexpr int exchange = keys + 2 * buffer_bytes;       // P of both warpgroups, or of warpgroup 0 alone
  static constexpr int maxima = exchange + (qk_tiles == 8 ? 2 : 1) * tile_bytes;  // float [2][64]
  static constexpr int sums = maxima + 512;                      // float [2][64]
  static constexpr int masks = sums + 512;                       // bytes [stages][8], see publish_mask
  static constexpr int barriers = masks + 8 * stages;            // full[stages], empty[stages]
  static constexpr int bytes = barriers + 2 * stages * 8 + 1024; // the base is rounded up to 1024
  // MLA has no room for P of warpgroup 1: it takes the 64 values of block 1 that are key only, and the block's two stages
  // are handed back together.
  static constexpr bool shares_block_1 = qk_tiles != 8;
  static constexpr int probabilities(int warpgroup) {
    return warpgroup == 1 && shares_block_1 ? keys + buffer_bytes + 8 * tile_bytes : exchange + warpgroup * tile_bytes;
  }
};

// A stage as its producer sees it.
template <typename Problem>
struct Stage {
  using Shared = LatentShared<Problem::qk_tiles>;
  std::uint32_t full, empty, masks, rows;
  __device__ Stage(std::uint32_t base, int buffer, int half)
      : full(base + Shared::barriers + (2 * buffer + half) * 8), empty(full + stages * 8), masks(base + Shared::masks + (2 * buffer + half) * 8),
        rows(base + Shared::keys + buffer * Shared::buffer_bytes + half * stage_rows * 128) {}
};

// Where a producer is: blocks of items, in the order in which the consumers take them.
template <typename Problem>
struct BlockCursor {
  int item, block = 0;
  __device__ bool more(const Problem& problem) const { return item < problem.items(); }
  __device__ void next(const Problem& problem) {
    if (++block < problem.blocks(item)) return;
    block = 0;
    item += gridDim.x;
  }
};

// Bits of a stage's rows, for rows that may be missing: 8 rows a byte when four threads hold a row, 4 rows a byte when
// eight do. Called by whole warps whose rows are neighbours.
template <int threads_per_row>
__device__ inline void publish_mask(std::uint32_t masks, int first_row_of_warp, bool valid) {
  constexpr int rows = 32 / threads_per_row;
  const unsigned votes = __ballot_sync(0xffffffffu, valid);
  if ((threadIdx.x & 31) != 0) return;
  unsigned byte = 0;
#pragma unroll
  for (int r = 0; r < rows; ++r) byte |= (votes >> (threads_per_row * r) & 1u) << r;
  asm volatile("st.shared.u8 [%0], %1;" ::"r"(masks + first_row_of_warp / rows), "r"(byte) : "memory");
}

// Keeps the compiler from looking at a loaded value before this point, which would wait for the load.
__device__ inline void not_before_here(int& value) { asm volatile("" : "+r"(value)); }

}  // namespace rackcast::kernels
