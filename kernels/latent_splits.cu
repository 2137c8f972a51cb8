#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/early_launch.hpp"
#include "kernels/latent_splits.hpp"

namespace rackcast::kernels {
namespace {

constexpr int dims = 512;

// A warp a row: weights the splits by their sums of exponentials.
__global__ void __launch_bounds__(128) combine_kernel(CombineParams p) {
  const int at = blockIdx.x * 4 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  const int group = at / 64, row = at % 64, row_of_tiles = group % p.tiles * 64 + row;
  if (row_of_tiles >= p.rows) return;
  constexpr float minus_infinity = -__builtin_huge_valf();
  cudaGridDependencySynchronize();
  const float* lse = p.partial_lse + static_cast<std::size_t>(group) * p.splits * 64 + row;
  float largest = minus_infinity;
  for (int s = lane; s < p.splits; s += 32) largest = fmaxf(largest, lse[s * 64]);
  largest = warp_max(largest);
  const float base = largest == minus_infinity ? 0.f : largest;
  float total = 0;
  for (int s = lane; s < p.splits; s += 32) total += exp2f(lse[s * 64] - base);
  total = warp_sum(total);
  const float with_sink = p.sink ? total + exp2f(p.sink[row] * 1.44269504f - base) : total;
  const float inverse = total > 0 ? 1.f / with_sink : 0.f;
  float4 out[4] = {};
#pragma unroll 4
  for (int s = 0; s < p.splits; ++s) {
    const float weight = exp2f(lse[s * 64] - base) * inverse;
    const auto* part = reinterpret_cast<const float4*>(p.partial_out + ((static_cast<std::size_t>(group) * p.splits + s) * 64 + row) * dims);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 v = part[lane + 32 * i];
      out[i].x += weight * v.x;
      out[i].y += weight * v.y;
      out[i].z += weight * v.z;
      out[i].w += weight * v.w;
    }
  }
  const std::size_t out_row = static_cast<std::size_t>(group / p.tiles) * p.rows + row_of_tiles;
  auto* target = reinterpret_cast<uint2*>(p.out + out_row * dims);
#pragma unroll
  for (int i = 0; i < 4; ++i) target[lane + 32 * i] = make_uint2(pack_bf16(out[i].x, out[i].y), pack_bf16(out[i].z, out[i].w));
  if (lane == 0) p.lse[out_row] = total > 0 ? (base + log2f(total)) * 0.69314718f : minus_infinity;
}

}  // namespace

void combine_splits(const CombineParams& params, Stream stream) {
  launch_early({static_cast<unsigned>(params.groups * 16), 128, stream}, combine_kernel, params);
}

}  // namespace rackcast::kernels
