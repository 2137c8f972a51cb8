// The grouped expert product in double on the GPU, one warp an element: for checks only.
#pragma once
#include "kernels/device.cuh"
#include "kernels/moe_gemm.hpp"
#include "kernels/moe_gemm_device.hpp"
#include "kernels/moe_gemm_schedule.cuh"

namespace rackcast::kernels {

struct GroupedReference {
  GroupedProduct product;
  const std::uint8_t* tokens = nullptr;
  const std::uint8_t* codes = nullptr;  // fp8 weights, or null: product.packed
  bool up = false;

  __device__ double weight(int expert, int row, int k) const {
    const int blocks = product.depth / 128, tiles = product.weight_rows / tile_rows;
    const std::size_t chunk = (static_cast<std::size_t>(expert) * tiles + row / tile_rows) * blocks + k / 128;
    const int in_tile = row % tile_rows;
    if (codes) {
      const int which = up ? in_tile % 16 / 8 : in_tile / 128;
      const std::size_t at = (static_cast<std::size_t>(expert) * product.weight_rows + row) * product.depth + k;
      return static_cast<double>(e4m3_to_float(codes[at])) * product.weight_scales[chunk * 2 + which];
    }
    const std::uint8_t* data = product.packed + chunk * packed_chunk_bytes;
    const PackedPlace place = packed_place(in_tile, k % 128);
    const unsigned code = place.high_nibble ? data[place.byte] >> 4 : data[place.byte] & 15u;
    return static_cast<double>(e2m1_to_float(code)) * ue8m0_to_float(data[packed_scales_at + in_tile * 4 + k % 128 / 32]);
  }
  __device__ double token(std::int64_t row, int k) const {
    return static_cast<double>(e4m3_to_float(tokens[row * product.depth + k])) * product.token_scales[static_cast<std::size_t>(k / 128) * product.token_pitch + row];
  }
};

struct GroupedPick {
  int expert;
  int row;  // absolute
};

__device__ inline double warp_sum_double(double value) {
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// out[pick][output]
static __global__ void grouped_reference_kernel(const __grid_constant__ GroupedReference reference, const GroupedPick* picks, int outputs, double* out) {
  const int output = static_cast<int>(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32), lane = threadIdx.x % 32;
  if (output >= outputs) return;
  const GroupedPick pick = picks[blockIdx.y];
  double first = 0, second = 0;
  for (int k = lane; k < reference.product.depth; k += 32) {
    const double x = reference.token(pick.row, k);
    const int row = reference.up ? output / 8 * 16 + output % 8 : output;
    first += x * reference.weight(pick.expert, row, k);
    if (reference.up) second += x * reference.weight(pick.expert, row + 8, k);
  }
  first = warp_sum_double(first);
  second = warp_sum_double(second);
  if (lane) return;
  if (reference.up) {
    const double gate = fmin(first, 10.0), up = fmin(fmax(second, -10.0), 10.0);
    first = gate / (1 + exp(-gate)) * up;
  }
  out[static_cast<std::size_t>(blockIdx.y) * outputs + output] = first;
}

// Dequantised weights of one expert, [weight_rows][depth], and of picked tokens, for the CPU reference.
static __global__ void grouped_dequantise_kernel(const __grid_constant__ GroupedReference reference, int expert, double* weights) {
  const std::size_t count = static_cast<std::size_t>(reference.product.weight_rows) * reference.product.depth;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x)
    weights[i] = reference.weight(expert, static_cast<int>(i / reference.product.depth), static_cast<int>(i % reference.product.depth));
}
static __global__ void grouped_tokens_kernel(const __grid_constant__ GroupedReference reference, const GroupedPick* picks, double* tokens) {
  for (int k = threadIdx.x; k < reference.product.depth; k += blockDim.x)
    tokens[static_cast<std::size_t>(blockIdx.x) * reference.product.depth + k] = reference.token(picks[blockIdx.x].row, k);
}

}  // namespace rackcast::kernels
