// Host half of the grouped expert product: how many rows each expert gets, where they lie, how mxfp4 weights are packed,
// and the computation in double. The mathematics is in moe_gemm_device.hpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/shape.hpp"

namespace rackcast::kernels {

// Rows of every expert, summing to `rows`: equal, multinomial (each row picks an expert), zipf06/zipf10/zipf14 (row picks
// expert i with weight (i+1)^-s), hot (half of the rows to expert 0, the rest equal). Same arguments, same counts.
std::vector<std::int32_t> draw_expert_rows(int experts, std::int64_t rows, const std::string& spread);

struct GroupedLayout {
  std::vector<std::int32_t> count, offset;  // of each expert
  std::int64_t rows = 0;                    // allocated, alignment included
};
// contiguous: segments follow each other, aligned to 128 rows. masked: every expert has room for the largest count.
GroupedLayout make_layout(std::vector<std::int32_t> counts, const std::string& layout);

// Where element (row 0..255, k 0..127) of a tile of 256 weight rows and 128 of K lies in its packed chunk: the order in which
// the products' A fragments want it. Scales of the tile follow its 16,384 bytes of codes, four a row.
struct PackedPlace {
  int byte = 0;
  bool high_nibble = false;
};
#ifdef __CUDACC__
__host__ __device__
#endif
inline PackedPlace packed_place(int row, int k) {
  const int slice = row / 16, in_slice = row % 16, k32 = k / 32;
  const int lane = in_slice % 8 * 4 + k % 16 / 4;
  const int word = k32 % 2 * 2 + k % 32 / 16;
  return {(slice * 2 + k32 / 2) * 512 + lane * 16 + word * 4 + k % 4, in_slice < 8};
}
constexpr int packed_scales_at = 16 * 1024;
constexpr int packed_chunk_bytes = 17 * 1024;

// Rows of W1 that hold output column i's gate and up.
constexpr int gate_row(int i) { return i / 8 * 16 + i % 8; }
constexpr int up_row(int i) { return gate_row(i) + 8; }

// References in double on dequantised values; x [rows][depth], weights [weight_rows][depth] of one expert.
std::vector<double> reference_up(const std::vector<double>& x, const std::vector<double>& weights, int depth);    // [rows][weight_rows / 2]
std::vector<double> reference_down(const std::vector<double>& x, const std::vector<double>& weights, int depth);  // [rows][weight_rows]

}  // namespace rackcast::kernels
