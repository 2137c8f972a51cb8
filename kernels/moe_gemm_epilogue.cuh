// What becomes of a finished tile of the grouped product. Accumulators as moe_gemm_math.cuh lays them out: acc[half][i] of
// warpgroup g covers weight rows 128 g + 64 half + 16 warp + lane / 4 (+ 8) and tokens 8 j + 2 (lane % 4) + ...; of a wide
// tile, tokens 64 half + 16 warp + lane / 4 (+ 8) and weight rows 128 g + 8 j + 2 (lane % 4) + ....
#pragma once
#include "kernels/hopper.cuh"
#include "kernels/moe_gemm_device.hpp"
#include "kernels/moe_gemm_schedule.cuh"

namespace rackcast::kernels {

template <int MaxTokens>
struct EpilogueShared {
  static constexpr int pitch = 144;  // bytes a token: 128 outputs and 16 against bank conflicts
  static constexpr int bytes = 8 * MaxTokens * 4 + MaxTokens * pitch;
};
// Wide bf16 tiles: a patch of 16 tokens x 64 outputs for each warp.
struct WideBf16Shared {
  static constexpr int pitch = 144;
  static constexpr int warp_bytes = 16 * pitch;
  static constexpr int bytes = 8 * warp_bytes;
};
constexpr float swiglu_limit = 10.0f;

__device__ inline float swiglu(float gate, float up) {
  gate = fminf(gate, swiglu_limit);
  up = fminf(fmaxf(up, -swiglu_limit), swiglu_limit);
  return __fdividef(gate, 1.0f + __expf(-gate)) * up;  // gate -> -inf: the divisor overflows, and 0 is right
}

// Of a power of two: exact.
__device__ inline float inverse_of_power(float scale) { return __uint_as_float(0x7f000000u - __float_as_uint(scale)); }

// The smallest power of two that keeps amax within e4m3's 448.
__device__ inline float scale_for(float amax) {
  const float exact = fmaxf(amax, 1e-10f) * (1.0f / 448.0f);
  return __uint_as_float((__float_as_uint(exact) + 0x7fffffu) & 0xff800000u);
}

// A tile's 128 codes a token, from shared memory, by both warpgroups.
template <int Pitch>
__device__ inline void copy_codes(const std::uint8_t* codes, const GroupedProduct& product, const GroupedTile& tile) {
  const int outputs = product.weight_rows / 2;
  for (int token = threadIdx.x / 8; token < tile.tokens; token += 32) {
    const int chunk = threadIdx.x % 8 * 16;
    const uint4 data = *reinterpret_cast<const uint4*>(codes + token * Pitch + chunk);
    *reinterpret_cast<uint4*>(product.out_codes + static_cast<std::size_t>(tile.token_row + token) * outputs + tile.weight_tile * 128 + chunk) = data;
  }
}

// Rows lane / 4 are gates and rows lane / 4 + 8 their ups; 256 weight rows give 128 outputs: one quantisation group.
template <int MaxTokens, int N>
__device__ inline void store_swiglu(float (&acc)[2][N / 2], const GroupedProduct& product, const GroupedTile& tile, std::uint8_t* shared) {
  constexpr int pitch = EpilogueShared<MaxTokens>::pitch;
  float* warp_amax = reinterpret_cast<float*>(shared);  // [8 warps][MaxTokens]
  std::uint8_t* codes = shared + 8 * MaxTokens * 4;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < N / 8; ++j)
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float largest = 0;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        acc[half][4 * j + c] = swiglu(acc[half][4 * j + c], acc[half][4 * j + 2 + c]);
        largest = fmaxf(largest, fabsf(acc[half][4 * j + c]));
      }
      for (int step = 4; step < 32; step <<= 1) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
      if (lane < 4) warp_amax[warp * MaxTokens + 8 * j + column + c] = largest;
    }
  named_barrier(1, 256);
#pragma unroll
  for (int j = 0; j < N / 8; ++j)
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int token = 8 * j + column + c;
      float largest = 0;
#pragma unroll
      for (int w = 0; w < 8; ++w) largest = fmaxf(largest, warp_amax[w * MaxTokens + token]);
      const float scale = scale_for(largest), inverse = inverse_of_power(scale);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int slice = warp / 4 * 8 + half * 4 + warp % 4;
        codes[token * pitch + slice * 8 + lane / 4] = float_to_e4m3(acc[half][4 * j + c] * inverse);
      }
      if (warp == 0 && lane < 4 && token < tile.tokens)
        product.out_scales[static_cast<std::size_t>(tile.weight_tile) * product.out_pitch + tile.token_row + token] = scale;
    }
  named_barrier(1, 256);
  copy_codes<pitch>(codes, product, tile);
}

// Groups of eight weight rows alternate between gates and ups; a token's 128 outputs lie in both warpgroups.
template <int MaxTokens>
__device__ inline void store_swiglu_wide(float (&acc)[2][64], const GroupedProduct& product, const GroupedTile& tile, std::uint8_t* shared) {
  constexpr int pitch = EpilogueShared<MaxTokens>::pitch;
  float* group_amax = reinterpret_cast<float*>(shared);  // [2 warpgroups][MaxTokens]
  std::uint8_t* codes = shared + 8 * MaxTokens * 4;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, group = threadIdx.x / 128;
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int low = 0; low < 2; ++low) {
      float largest = 0;
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& value = acc[half][8 * j + 2 * low + c];
          value = swiglu(value, acc[half][8 * j + 4 + 2 * low + c]);
          largest = fmaxf(largest, fabsf(value));
        }
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
      if (lane % 4 == 0) group_amax[group * MaxTokens + half * 64 + warp * 16 + low * 8 + lane / 4] = largest;
    }
  named_barrier(1, 256);
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int low = 0; low < 2; ++low) {
      const int token = half * 64 + warp * 16 + low * 8 + lane / 4;
      const float scale = scale_for(fmaxf(group_amax[token], group_amax[MaxTokens + token])), inverse = inverse_of_power(scale);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float2 pair = make_float2(acc[half][8 * j + 2 * low] * inverse, acc[half][8 * j + 2 * low + 1] * inverse);
        *reinterpret_cast<__nv_fp8x2_storage_t*>(codes + token * pitch + group * 64 + j * 8 + lane % 4 * 2) = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E4M3);
      }
      if (group == 0 && lane % 4 == 0 && token < tile.tokens)
        product.out_scales[static_cast<std::size_t>(tile.weight_tile) * product.out_pitch + tile.token_row + token] = scale;
    }
  named_barrier(1, 256);
  copy_codes<pitch>(codes, product, tile);
}

// 8 x 8 blocks are transposed within the warp, so that a thread holds two neighbouring outputs of one token.
template <int N>
__device__ inline void store_bf16(const float (&acc)[2][N / 2], const GroupedProduct& product, const GroupedTile& tile) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  auto* out = static_cast<__nv_bfloat16*>(product.out);
#pragma unroll
  for (int j = 0; j < N / 8; ++j) {
    const int token = 8 * j + lane / 4;
    __nv_bfloat16* row = out + static_cast<std::size_t>(tile.token_row + token) * product.weight_rows + tile.weight_tile * tile_rows + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int low = 0; low < 2; ++low) {
        std::uint32_t block = pack_bf16(acc[half][4 * j + 2 * low], acc[half][4 * j + 2 * low + 1]);
        asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(block));
        const int weight_row = warp / 4 * 128 + half * 64 + warp % 4 * 16 + low * 8;
        if (token < tile.tokens) *reinterpret_cast<std::uint32_t*>(row + weight_row) = block;
      }
  }
}

// Through a patch of shared memory of the warp's own, so that whole lines are written.
__device__ inline void store_bf16_wide(const float (&acc)[2][64], const GroupedProduct& product, const GroupedTile& tile, std::uint8_t* shared) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::uint8_t* patch = shared + warp * WideBf16Shared::warp_bytes;
  auto* out = static_cast<__nv_bfloat16*>(product.out);
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int columns = 0; columns < 2; ++columns) {
      __syncwarp();
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int low = 0; low < 2; ++low) {
          const int at = 4 * (columns * 8 + j) + 2 * low;
          *reinterpret_cast<std::uint32_t*>(patch + (lane / 4 + low * 8) * WideBf16Shared::pitch + j * 16 + lane % 4 * 4) = pack_bf16(acc[half][at], acc[half][at + 1]);
        }
      __syncwarp();
#pragma unroll
      for (int pass = 0; pass < 4; ++pass) {
        const int row = pass * 4 + lane / 8, token = half * 64 + warp % 4 * 16 + row;
        const uint4 data = *reinterpret_cast<const uint4*>(patch + row * WideBf16Shared::pitch + lane % 8 * 16);
        if (token < tile.tokens)
          *reinterpret_cast<uint4*>(out + static_cast<std::size_t>(tile.token_row + token) * product.weight_rows + tile.weight_tile * tile_rows + warp / 4 * 128 +
                                    columns * 64 + lane % 8 * 8) = data;
      }
    }
}

}  // namespace rackcast::kernels
