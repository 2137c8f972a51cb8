#include "kernels/moe_gemm_weights.hpp"

#include <cmath>

#include "kernels/device.cuh"
#include "kernels/moe_gemm.hpp"
#include "kernels/moe_gemm_schedule.cuh"

namespace rackcast::kernels {
namespace {

constexpr float code_sigma = 60.0f;  // of e4m3 codes' values: 448 is 7.5 sigma

template <typename T, typename Draw>
__global__ void draw_kernel(T* out, std::size_t count, Draw draw) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x) out[i] = draw(i);
}
template <typename T, typename Draw>
void draw_all(T* out, std::size_t count, Draw draw) {
  if (count == 0) return;
  draw_kernel<<<2048, 256>>>(out, count, draw);
  RACKCAST_LAUNCH_CHECK();
}

struct Scale {
  std::uint64_t seed;
  float base;
  __device__ float operator()(std::size_t i) const { return base * (0.5f + static_cast<float>(random_bits(seed, i) >> 40) * 0x1p-24f); }
};
struct PowerScale {
  std::uint64_t seed;
  int low, high;
  __device__ float operator()(std::size_t i) const {
    return exp2f(static_cast<float>(low + static_cast<int>((random_bits(seed, i) >> 33) % static_cast<unsigned>(high - low + 1))));
  }
};
struct PackedByte {
  std::uint64_t seed;
  int exponent;  // scales are 2^(exponent - 1 .. exponent + 1)
  __device__ std::uint8_t operator()(std::size_t i) const {
    const std::uint64_t bits = random_bits(seed, i);
    if (i % packed_chunk_bytes < packed_scales_at) return static_cast<std::uint8_t>(bits >> 32);
    return static_cast<std::uint8_t>(127 + exponent - 1 + static_cast<int>((bits >> 33) % 3));
  }
};

}  // namespace

void fill_scales(float* out, std::size_t count, float base, std::uint64_t seed) { draw_all(out, count, Scale{seed, base}); }
void fill_power_scales(float* out, std::size_t count, int low, int high, std::uint64_t seed) { draw_all(out, count, PowerScale{seed, low, high}); }

ExpertWeights random_expert_weights(int experts, int weight_rows, int depth, bool mxfp4, std::uint64_t seed) {
  const std::size_t count = static_cast<std::size_t>(experts) * weight_rows * depth;
  const std::size_t chunks = count / (tile_rows * 128);
  const float sigma = 1.0f / std::sqrt(static_cast<float>(depth));
  ExpertWeights weights;
  if (mxfp4) {
    weights.packed = DeviceBuffer<std::uint8_t>(chunks * packed_chunk_bytes);
    const float code_rms = 2.93f;  // of e2m1's sixteen codes
    draw_all(weights.packed.data(), weights.packed.size(), PackedByte{seed, static_cast<int>(std::lround(std::log2(sigma / code_rms)))});
  } else {
    weights.codes = DeviceBuffer<std::uint8_t>(count);
    weights.scales = DeviceBuffer<float>(chunks * 2);
    fill_e4m3_normal(weights.codes.data(), count, code_sigma, seed);
    fill_scales(weights.scales.data(), weights.scales.size(), sigma / code_sigma, seed + 1);
  }
  return weights;
}

}  // namespace rackcast::kernels
