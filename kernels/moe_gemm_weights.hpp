// Random expert weights on the GPU, as the grouped product wants them. Only for CUDA builds.
#pragma once
#include "kernels/device.hpp"
#include "kernels/moe_gemm_device.hpp"

namespace rackcast::kernels {

struct ExpertWeights {
  DeviceBuffer<std::uint8_t> codes;   // fp8
  DeviceBuffer<float> scales;         // fp8
  DeviceBuffer<std::uint8_t> packed;  // mxfp4
};
// One matrix [experts][weight_rows][depth] whose products with N(0, 1) tokens have a variance near 1.
ExpertWeights random_expert_weights(int experts, int weight_rows, int depth, bool mxfp4, std::uint64_t seed);

// Positive fp32 scales base * [0.5, 1.5) and power-of-two scales 2^low..2^high.
void fill_scales(float* out, std::size_t count, float base, std::uint64_t seed);
void fill_power_scales(float* out, std::size_t count, int low, int high, std::uint64_t seed);

}  // namespace rackcast::kernels
