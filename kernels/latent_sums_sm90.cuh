// What one consumer thread of the Hopper attention kernel accumulates, and how it reaches shared memory.
#pragma once
#include "kernels/hopper_wgmma.cuh"
#include "kernels/latent_stages.cuh"

namespace rackcast::kernels {

#if RACKCAST_HAVE_WGMMA

constexpr float minus_infinity = -__builtin_huge_valf();

// Exponentials are taken against a base that follows the largest logit only when that has outgrown it by this much (in
// log2): sums and outputs are then seldom rescaled, probabilities stay below 2^8, and the quotient is the same.
constexpr float base_slack_log2 = 8;

__device__ inline void put_shared(std::uint32_t address, float value) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory"); }
__device__ inline float get_shared(std::uint32_t address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}
__device__ inline uint4 get_shared_16(std::uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address) : "memory");
  return v;
}

// 2^x; results below 2^-126 are 0, which exp2f takes three more instructions to avoid.
__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 64 x 256 sums of a warpgroup, as one product or two wide. Value i of a thread: column 8 (i / 4) + i % 2, row i / 2 % 2.
template <bool one>
struct OutputSums {
  static constexpr int width = one ? 128 : 64;
  float part[128 / width][width];
  __device__ float& operator[](int i) { return part[i / width][i % width]; }
  __device__ void fence() {
#pragma unroll
    for (int k = 0; k < 128 / width; ++k) accumulators_fence(part[k]);
  }
  template <bool half, typename Operand>
  __device__ void add(const Operand& p, std::uint64_t rows) {
#pragma unroll
    for (int k = 0; k < 128 / width; ++k) wgmma_values_64xNx16<half>(part[k], p, tile_plus(rows, k * 2 * tile_bytes), 1);
  }
};

// What one thread knows of its two rows.
struct RowState {
  float base_log2[2] = {minus_infinity, minus_infinity}, sum[2] = {0, 0}, correction[2] = {1, 1};

  // What was summed so far is to be multiplied by correction.
  __device__ void raise(const float (&to)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float next = to[r] > base_log2[r] + base_slack_log2 ? to[r] : base_log2[r];
      correction[r] = next == base_log2[r] ? 1.f : power_of_two(base_log2[r] - next);
      base_log2[r] = next;
      sum[r] *= correction[r];
    }
  }
  __device__ float subtrahend(int r) const { return base_log2[r] == minus_infinity ? 0.f : base_log2[r]; }
};

#endif

}  // namespace rackcast::kernels
