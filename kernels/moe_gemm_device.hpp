// The grouped expert product as its launchers see it. Per expert e, rows of tokens times the expert's weights:
//   up:   h = swiglu(X_e W1_e^T), quantised again to e4m3 with one power-of-two scale a row and 128 columns
//   down: y = H_e W2_e^T, bf16
// X, H: e4m3, row-major, one fp32 scale a row and 128 columns, the scales stored column block by column block.
// Weights fp8: e4m3, row-major, one fp32 scale a 128 x 128 block. Weights mxfp4: e2m1 with one UE8M0 scale a row and 32
// columns, stored in the order in which the kernel reads them (pack_mxfp4 in moe_gemm.hpp).
// W1 interleaves gate and up by eight rows: rows 16 i .. 16 i + 7 are gates 8 i .. 8 i + 7, the next eight their ups.
// Rows of an expert start at offset[e] (a multiple of 8) and are count[e] many; both are read on the device, so one launch
// serves the masked layout (offset[e] = e * capacity) and the contiguous one.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "kernels/launcher.hpp"

namespace rackcast::kernels {

struct GroupedProduct {
  int experts = 0;
  int depth = 0;              // K, a multiple of 128, at most 8,192
  int weight_rows = 0;        // an expert's: 2 I (up) or H (down), a multiple of 512
  const int* offset = nullptr;
  const int* count = nullptr;
  const float* token_scales = nullptr;   // [K / 128][token_pitch], token_pitch a multiple of 4, 128 floats of slack behind
  int token_pitch = 0;
  const float* weight_scales = nullptr;  // fp8: [experts][weight_rows / 256][K / 128][2]: up: gate and up; down: upper and lower 128 rows
  const std::uint8_t* packed = nullptr;  // mxfp4
  std::uint8_t* out_codes = nullptr;     // up: [rows][I]
  float* out_scales = nullptr;           // up: [I / 128][out_pitch]
  int out_pitch = 0;
  void* out = nullptr;                   // down: bf16 [rows][H]
  CUtensorMap tokens_by_8, tokens_by_64, weights;  // make_grouped_maps
};

// token_rows: rows that exist behind `tokens` (reads past them give zeros). codes: weights of fp8, null for mxfp4.
void make_grouped_maps(GroupedProduct& product, const std::uint8_t* tokens, std::int64_t token_rows, const std::uint8_t* codes);

enum class GroupedKernel {
  portable,      // warp-level products, any GPU from sm_90 on
  sm90,          // warpgroup products
  sm90_cluster,  // the same, pairs of CTAs share what they load (fp8 only): for many rows an expert
};
void launch_grouped_up(const GroupedProduct& product, bool mxfp4, GroupedKernel kernel, int sm_count, Stream stream);
void launch_grouped_down(const GroupedProduct& product, bool mxfp4, GroupedKernel kernel, int sm_count, Stream stream);

}  // namespace rackcast::kernels
