// The same as latent_attention_sm90.cuh with warp products (mma.sync), for every target: one CTA of 8 warps an item.
// Warp w holds query rows 16 (w mod 4) .. +15; its logits are for 32 of the 64 KV rows of a block (half w / 4), its
// output is 256 of the 512 columns. The next block's rows wait in registers while this one is multiplied.
#pragma once
#include "kernels/latent_kv.cuh"

namespace rackcast::kernels {

template <int qk_tiles>
struct PortableShared {
  static constexpr int buffer_bytes = qk_tiles * tile_bytes;
  static constexpr int keys = buffer_bytes;
  static constexpr int probabilities = 2 * buffer_bytes;
  static constexpr int maxima = probabilities + tile_bytes;  // float [2][64]
  static constexpr int sums = maxima + 512;
  static constexpr int valid = sums + 512;                   // int [64]
  static constexpr int bytes = valid + 256 + 1024;
};

template <bool half>
__device__ inline void multiply_16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  if constexpr (half) mma_f16_16x8x16(d, a, b0, b1);
  else mma_bf16_16x8x16(d, a, b0, b1);
}

template <typename Problem>
__global__ void __launch_bounds__(256, 1) latent_attention_portable(const __grid_constant__ Problem problem) {
  cudaTriggerProgrammaticLaunchCompletion();  // a combine kernel may take its place early; it waits for our end itself
  using Shared = PortableShared<Problem::qk_tiles>;
  extern __shared__ std::uint8_t shared_memory[];
  const std::uint32_t base = (shared_address(shared_memory) + 1023u) & ~1023u;
  std::uint8_t* generic = shared_memory + (base - shared_address(shared_memory));
  auto* maxima = reinterpret_cast<float*>(generic + Shared::maxima);
  auto* sums = reinterpret_cast<float*>(generic + Shared::sums);
  auto* valid = reinterpret_cast<int*>(generic + Shared::valid);
  const std::uint32_t query = base, keys = base + Shared::keys, probabilities = base + Shared::probabilities;
  const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, group = lane >> 2, pair = lane & 3;
  const int row_tile = (warp & 3) * 16, half = warp >> 2, row0 = row_tile + group;
  const int load_row = thread >> 2, quarter = thread & 3;
  const int item = blockIdx.x, blocks = problem.blocks(item);
  constexpr float minus_infinity = -__builtin_huge_valf();

  const __nv_bfloat16* source = problem.query(item, load_row);
#pragma unroll
  for (int i = 0; i < 2 * Problem::qk_tiles; ++i) {
    const int chunk = quarter + 4 * i;
    cp_async_16(query + chunk_offset(load_row, chunk), source ? reinterpret_cast<const std::uint8_t*>(source) + chunk * 16 : problem.any_row(), source != nullptr);
  }
  cp_async_commit();

  if constexpr (Problem::half) {  // this thread's own copies, in place
    cp_async_wait<0>();
#pragma unroll 4
    for (int i = 0; i < 2 * Problem::qk_tiles; ++i) {
      auto* at = reinterpret_cast<uint4*>(generic + chunk_offset(load_row, quarter + 4 * i));
      *at = make_uint4(bf16x2_to_f16x2(at->x), bf16x2_to_f16x2(at->y), bf16x2_to_f16x2(at->z), bf16x2_to_f16x2(at->w));
    }
  }

  typename Problem::Raw raw;
  if constexpr (Problem::source == RowSource::converted) raw.load(problem.pools(), problem.selected(item, 0), problem.slot(item, 0, load_row), quarter);

  float out[32][4];
#pragma unroll
  for (int j = 0; j < 32; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) out[j][i] = 0;
  float largest[2] = {minus_infinity, minus_infinity}, sum[2] = {0, 0};

  for (int block = 0; block < blocks; ++block) {
    __syncthreads();  // the block before is done with keys and probabilities
    if constexpr (Problem::source != RowSource::converted) {
      const std::uint8_t* row = problem.row_address(item, block, load_row);
#pragma unroll
      for (int i = 0; i < 2 * Problem::qk_tiles; ++i) {
        const int chunk = quarter + 4 * i;
        cp_async_16(keys + chunk_offset(load_row, chunk), row ? row + chunk * 16 : problem.any_row(), row != nullptr);
      }
      cp_async_commit();
      cp_async_wait<0>();
    } else {
      raw.store(keys, problem.selected(item, block), load_row, quarter);
      if (block + 1 < blocks) raw.load(problem.pools(), problem.selected(item, block + 1), problem.slot(item, block + 1, load_row), quarter);
      cp_async_wait<0>();
    }
    if (quarter == 0) valid[load_row] = problem.row_valid(item, block, load_row);
    __syncthreads();

    float logits[4][4] = {};
#pragma unroll 4
    for (int step = 0; step < 4 * Problem::qk_tiles; ++step) {
      std::uint32_t a[4], b[4];
      ldmatrix_x4(a, query + chunk_offset(row_tile + (lane & 15), 2 * step + (lane >> 4)));
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        ldmatrix_x4(b, keys + chunk_offset(half * 32 + n * 16 + ((lane >> 4) << 3) + (lane & 7), 2 * step + ((lane >> 3) & 1)));
        multiply_16<Problem::half>(logits[2 * n], a, b[0], b[1]);
        multiply_16<Problem::half>(logits[2 * n + 1], a, b[2], b[3]);
      }
    }
    float mine[2] = {minus_infinity, minus_infinity};
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = half * 32 + 8 * j + 2 * pair + (i & 1);
        bool visible = valid[column];
        if constexpr (Problem::causal) visible = visible && problem.position(item, block) + column < problem.limit(item, row0 + 8 * (i >> 1));
        if (!visible) logits[j][i] = minus_infinity;
        mine[i >> 1] = fmaxf(mine[i >> 1], logits[j][i]);
      }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      mine[r] = fmaxf(mine[r], __shfl_xor_sync(0xffffffffu, mine[r], 1));
      mine[r] = fmaxf(mine[r], __shfl_xor_sync(0xffffffffu, mine[r], 2));
      if (pair == 0) maxima[half * 64 + row0 + 8 * r] = mine[r];
    }
    __syncthreads();
    float correction[2], base_log2[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float next = fmaxf(largest[r], fmaxf(mine[r], maxima[(1 - half) * 64 + row0 + 8 * r]) * problem.scale_log2());
      base_log2[r] = next == minus_infinity ? 0.f : next;
      correction[r] = exp2f(largest[r] - base_log2[r]);
      largest[r] = next;
      sum[r] *= correction[r];
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float a = exp2f(fmaf(logits[j][2 * r], problem.scale_log2(), -base_log2[r]));
        const float b = exp2f(fmaf(logits[j][2 * r + 1], problem.scale_log2(), -base_log2[r]));
        sum[r] += a + b;
        const int row = row0 + 8 * r, chunk = half * 4 + j;
        *reinterpret_cast<std::uint32_t*>(generic + Shared::probabilities + row * 128 + ((chunk ^ (row & 7)) << 4) + pair * 4) = pack_16<Problem::half>(a, b);
      }
#pragma unroll
    for (int j = 0; j < 32; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) out[j][i] *= correction[i >> 1];
    __syncthreads();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      std::uint32_t a[4], b[4];
      ldmatrix_x4(a, probabilities + chunk_offset(row_tile + (lane & 15), 2 * step + (lane >> 4)));
#pragma unroll
      for (int n = 0; n < 16; ++n) {
        ldmatrix_x4_trans(b, keys + chunk_offset(step * 16 + (lane & 15), half * 32 + 2 * n + (lane >> 4)));
        multiply_16<Problem::half>(out[2 * n], a, b[0], b[1]);
        multiply_16<Problem::half>(out[2 * n + 1], a, b[2], b[3]);
      }
    }
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
    sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
    if (pair == 0) sums[half * 64 + row0 + 8 * r] = sum[r];
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = row0 + 8 * r;
    const float total = sum[r] + sums[(1 - half) * 64 + row];
    if (half == 0 && pair == 0) problem.store_lse(item, row, total > 0 ? largest[r] + log2f(total) : minus_infinity);
    const float weight = total > 0 ? 1.f / (total + exp2f(problem.sink_log2(row) - largest[r])) : 0.f;
    const OutputRow output = problem.output(item, row);
#pragma unroll
    for (int j = 0; j < 32; ++j)
      output.store(half * 256 + 8 * j + 2 * pair, out[j][2 * r] * weight, out[j][2 * r + 1] * weight);
  }
}

}  // namespace rackcast::kernels
