// Splitting the KV rows of few queries over many SMs, and putting the parts together again.
#pragma once
#include <cstdint>

#include "kernels/launcher.hpp"

namespace rackcast::kernels {

struct SplitPlan {
  int splits = 1;
  int blocks_per_split = 2;  // blocks of 64 rows, even
};
// The split with the shortest estimated makespan of `groups` independent row tiles over `keys` rows on sm_count CTAs.
SplitPlan plan_splits(int groups, int keys, int sm_count);

struct CombineParams {
  const float* partial_out = nullptr;  // [groups][splits][64][512], each normalised by its own sum
  const float* partial_lse = nullptr;  // [groups][splits][64], log2 of the sum of exponentials
  int splits = 1;
  int groups = 0;                      // row tiles of 64
  int tiles = 1;                       // row tiles that belong together...
  int rows = 64;                       // ...and their real rows; the last tile's rest is padding
  const float* sink = nullptr;         // [64], by row of the tile; null: none
  std::uint16_t* out = nullptr;        // bf16 [groups / tiles][rows][512]
  float* lse = nullptr;                // [groups / tiles][rows]
};
// Its prologue overlaps the tail of the kernel before it in the stream (programmatic dependent launch).
void combine_splits(const CombineParams& params, Stream stream);

}  // namespace rackcast::kernels
