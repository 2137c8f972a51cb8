// The inner products of the grouped kernel: D(64 weight rows x N tokens) over 128 of K, by warpgroup (sm_90a) or warp
// products. Both leave accumulators in the same registers: part[4 j + c] of a thread is token 8 j + 2 (lane % 4) + c % 2,
// weight row 16 * warp + lane / 4 + 8 * (c / 2).
// Floors on an H200 (132 SMs): e4m3 warpgroup products 4,096 multiply-adds a cycle and SM, 64 cycles for 64 x 128 x 32.
#pragma once
#include "kernels/hopper.cuh"
#include "kernels/hopper_wgmma.cuh"

namespace rackcast::kernels {

struct WarpgroupProduct {
  static constexpr bool asynchronous = true;
  __device__ static void begin() {
#if RACKCAST_HAVE_WGMMA
    wgmma_fence();
#endif
  }
  __device__ static void commit() {
#if RACKCAST_HAVE_WGMMA
    wgmma_commit();
#endif
  }
  __device__ static void wait() {
#if RACKCAST_HAVE_WGMMA
    wgmma_wait<0>();
#endif
  }
  // Columns 32 k .. 32 k + 31 of the swizzled tiles at a (64 rows) and b (N rows).
  template <int Half>
  __device__ static void from_shared(float (&part)[Half], std::uint32_t a, std::uint32_t b, int k, bool accumulate) {
#if RACKCAST_HAVE_WGMMA
    wgmma_e4m3_64xNx32(part, swizzled_tile(a) + 2 * k, swizzled_tile(b) + 2 * k, accumulate);
#endif
  }
  template <int Half>
  __device__ static void from_registers(float (&part)[Half], const std::uint32_t (&a)[4], std::uint32_t b, int k, bool accumulate) {
#if RACKCAST_HAVE_WGMMA
    wgmma_e4m3_64xNx32(part, a, swizzled_tile(b) + 2 * k, accumulate);
#endif
  }
};

struct WarpProduct {
  static constexpr bool asynchronous = false;
  __device__ static void begin() {}
  __device__ static void commit() {}
  __device__ static void wait() {}
  template <int Half>
  __device__ static void from_registers(float (&part)[Half], const std::uint32_t (&a)[4], std::uint32_t b, int k, bool accumulate) {
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t row = b + (lane / 4) * 128 + (lane % 4) * 4;
    const unsigned swizzle = lane / 4;  // token % 8
#pragma unroll
    for (int j = 0; j < Half / 4; ++j) {
      std::uint32_t b0, b1;
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(b0) : "r"(row + j * 1024 + ((2 * k) ^ swizzle) * 16));
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(b1) : "r"(row + j * 1024 + ((2 * k + 1) ^ swizzle) * 16));
      float d[4] = {0, 0, 0, 0};
      if (accumulate)
        for (int c = 0; c < 4; ++c) d[c] = part[4 * j + c];
      mma_e4m3_16x8x32(d, a, b0, b1);
#pragma unroll
      for (int c = 0; c < 4; ++c) part[4 * j + c] = d[c];
    }
  }
  template <int Half>
  __device__ static void from_shared(float (&part)[Half], std::uint32_t a, std::uint32_t b, int k, bool accumulate) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    std::uint32_t fragment[4];
    ldmatrix_x4(fragment, a + (warp * 16 + lane % 16) * 128 + ((2 * k + lane / 16) ^ (lane % 8)) * 16);
    from_registers(part, fragment, b, k, accumulate);
  }
};

// Four e2m1 in the high nibbles of four bytes -> four e4m3 of 2^-6 times the value: shifting the three magnitude bits to
// the exponent's two low bits and the mantissa's high bit is exact, denormals included.
__device__ inline std::uint32_t e2m1_high_to_e4m3(std::uint32_t x) { return (x & 0x80808080u) | ((x >> 2) & 0x1c1c1c1cu); }
__device__ inline std::uint32_t e2m1_low_to_e4m3(std::uint32_t x) { return ((x << 4) & 0x80808080u) | ((x << 2) & 0x1c1c1c1cu); }
constexpr float e2m1_as_e4m3_scale = 64.0f;

__device__ inline float scale_byte(std::uint32_t word, int k) { return __uint_as_float(((word >> (8 * k)) & 0xffu) << 23); }

}  // namespace rackcast::kernels
