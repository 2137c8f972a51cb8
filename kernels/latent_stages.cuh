// Where the Hopper attention kernel keeps what in shared memory, and in which order its producers and consumers go through
// blocks of KV rows. A block of 64 rows has one of two buffers and two stages of 32 rows; a stage arrives in groups of columns,
// so that the product of keys can start before it is whole (it pays only where rows come by the copy engine).
#pragma once
#include "kernels/hopper.cuh"
#include "kernels/latent_kv.cuh"

namespace rackcast::kernels {

constexpr int stage_rows = 32;
constexpr int stages = 4;  // two a block
constexpr int first_tiles = 4;  // of 64 columns in the first of two groups

template <typename Problem>
struct LatentShared {
  static constexpr int qk_tiles = Problem::qk_tiles;
  static constexpr int groups = Problem::source == RowSource::pages ? 2 : 1;
  static constexpr int buffer_bytes = qk_tiles * tile_bytes;
  static constexpr int query = 0;
  static constexpr int keys = buffer_bytes;                      // two buffers
  static constexpr int exchange = keys + 2 * buffer_bytes;       // P of both warpgroups, or of one at a time
  static constexpr int maxima = exchange + (qk_tiles == 8 ? 2 : 1) * tile_bytes;  // float [2][64]
  static constexpr int sums = maxima + 512;                      // float [2][64]
  static constexpr int masks = sums + 512;                       // bytes [stages][8], see publish_mask
  static constexpr int full = masks + 8 * stages;                // barriers [stages][groups]
  static constexpr int empty = full + stages * groups * 8;       // barriers [stages]
  static constexpr int ready = empty + stages * 8;               // barriers [2]: P and bases of a warpgroup are there
  static constexpr int bytes = ready + 2 * 8 + 1024;             // the base is rounded up to 1024
  // MLA has room for one P: warpgroup 1 writes its own once both have read the other's.
  static constexpr bool two_exchanges = qk_tiles == 8;
  static constexpr int probabilities(int warpgroup) { return exchange + (two_exchanges ? warpgroup * tile_bytes : 0); }
};

// A stage as its producer sees it.
template <typename Problem>
struct Stage {
  using Shared = LatentShared<Problem>;
  std::uint32_t full, empty, masks, rows;  // full: the first group's barrier, the second's behind it
  __device__ Stage(std::uint32_t base, int buffer, int half)
      : full(base + Shared::full + (2 * buffer + half) * Shared::groups * 8), empty(base + Shared::empty + (2 * buffer + half) * 8), masks(base + Shared::masks + (2 * buffer + half) * 8),
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
  unsigned byte = votes;  // every fourth or eighth bit, drawn together
  if constexpr (threads_per_row == 4) {
    byte &= 0x11111111u;
    byte = (byte | byte >> 3) & 0x03030303u;
    byte = (byte | byte >> 6) & 0x000f000fu;
    byte = (byte | byte >> 12) & 0xffu;
  } else {
    byte &= 0x01010101u;
    byte = (byte | byte >> 7) & 0x00030003u;
    byte = (byte | byte >> 14) & 0xfu;
  }
  asm volatile("st.shared.u8 [%0], %1;" ::"r"(masks + first_row_of_warp / rows), "r"(byte) : "memory");
}

// Keeps the compiler from looking at a loaded value before this point, which would wait for the load.
__device__ inline void not_before_here(int& value) { asm volatile("" : "+r"(value)); }

}  // namespace rackcast::kernels
