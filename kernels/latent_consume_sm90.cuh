// The consumers of the Hopper attention kernel (latent_attention_sm90.cuh): one warpgroup's logits, softmax and half of the
// output columns.
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

template <typename Problem>
__device__ inline void load_query(const Problem& problem, int item, std::uint32_t query) {
  const int row = threadIdx.x >> 2, quarter = threadIdx.x & 3;  // 256 threads
  const __nv_bfloat16* source = problem.query(item, row);
#pragma unroll
  for (int i = 0; i < 2 * Problem::qk_tiles; ++i) {
    const int chunk = quarter + 4 * i;
    cp_async_16(query + chunk_offset(row, chunk), source ? reinterpret_cast<const std::uint8_t*>(source) + chunk * 16 : problem.any_row(), source != nullptr);
  }
  cp_async_commit();
}

// After this thread's own copies have landed: bf16 to fp16 in place.
template <typename Problem>
__device__ inline void convert_query(std::uint32_t query) {
  const int row = threadIdx.x >> 2, quarter = threadIdx.x & 3;
#pragma unroll 4
  for (int i = 0; i < 2 * Problem::qk_tiles; ++i) {
    const std::uint32_t address = query + chunk_offset(row, quarter + 4 * i);
    const uint4 v = get_shared_16(address);
    store_shared_16(address, bf16x2_to_f16x2(v.x), bf16x2_to_f16x2(v.y), bf16x2_to_f16x2(v.z), bf16x2_to_f16x2(v.w));
  }
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
      correction[r] = next == base_log2[r] ? 1.f : exp2f(base_log2[r] - next);
      base_log2[r] = next;
      sum[r] *= correction[r];
    }
  }
  __device__ float subtrahend(int r) const { return base_log2[r] == minus_infinity ? 0.f : base_log2[r]; }
};

// One warpgroup's half: logits of its block, probabilities of both, 256 output columns.
template <int warpgroup, typename Problem>
struct Consumer {
  using Shared = LatentShared<Problem::qk_tiles>;
  const Problem& problem;
  const std::uint32_t base;
  const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3, pair = lane & 3;
  const int row0 = warp * 16 + (lane >> 2);  // this thread's rows are row0 and row0 + 8
  const std::uint32_t own_p = base + Shared::probabilities(warpgroup);
  const std::uint32_t matrix_row = (warp * 16 + (lane & 15)) * 128;  // of this lane in stmatrix: rows 0-7, 8-15, twice
  OutputSums<Problem::wide_products> out;
  RowState rows;
  std::uint32_t p[16];  // this block's probabilities: register operand of the four k steps

  __device__ std::uint32_t full(int block, int half) const { return base + Shared::barriers + (2 * block + half) * 8; }
  __device__ std::uint32_t at_matrix(int j) const { return own_p + matrix_row + (((j + (lane >> 4)) ^ (lane & 7)) << 4); }

  __device__ void multiply_keys(float (&logits)[32]) {
    if constexpr (Problem::source == RowSource::copied) async_proxy_fence();
    const std::uint64_t query = swizzled_tile(base + Shared::query);
    const std::uint64_t keys = swizzled_tile(base + Shared::keys + warpgroup * Shared::buffer_bytes);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4 * Problem::qk_tiles; ++step) {
      const std::uint32_t offset = (step >> 2) * tile_bytes + (step & 3) * 32;
      wgmma_keys_64xNx16<Problem::half>(logits, tile_plus(query, offset), tile_plus(keys, offset), step != 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    accumulators_fence(logits);
  }

  __device__ void hide_missing_rows(float (&logits)[32]) const {
    constexpr int words = Problem::source == RowSource::converted ? 1 : 2, rows_per_byte = 8 / words;
    constexpr std::uint32_t all = words == 1 ? 0xffffffffu : 0x0f0f0f0fu;
    std::uint32_t mask[2][2];  // of the block's two stages
#pragma unroll
    for (int half = 0; half < 2; ++half)
      asm volatile("ld.shared.v2.b32 {%0,%1}, [%2];"
                   : "=r"(mask[half][0]), "=r"(mask[half][1]) : "r"(base + Shared::masks + (2 * warpgroup + half) * 8) : "memory");
    if (mask[0][0] == all && mask[1][0] == all && (words == 1 || (mask[0][1] == all && mask[1][1] == all))) return;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const int tile_row = 8 * ((i >> 2) & 3), row = tile_row + 2 * pair + (i & 1);  // in its stage
      const std::uint32_t word = mask[i >> 4][words == 2 ? (tile_row >> 4) : 0];
      const int byte = row / rows_per_byte % 4;
      if (!((word >> (8 * byte + row % rows_per_byte)) & 1u)) logits[i] = minus_infinity;
    }
  }

  __device__ void hide_later_rows(float (&logits)[32], const int (&limit)[2], int first) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int visible = limit[r] - first;
      if (visible < block_rows)
#pragma unroll
        for (int i = 0; i < 32; ++i)
          if (((i >> 1) & 1) == r && 8 * (i >> 2) + 2 * pair + (i & 1) >= visible) logits[i] = minus_infinity;
    }
  }

  __device__ void find_maxima(const float (&logits)[32], float (&mine)[2]) const {  // of this block, in log2 units
    mine[0] = mine[1] = minus_infinity;
#pragma unroll
    for (int i = 0; i < 32; ++i) mine[(i >> 1) & 1] = fmaxf(mine[(i >> 1) & 1], logits[i]);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      mine[r] = fmaxf(mine[r], __shfl_xor_sync(0xffffffffu, mine[r], 1));
      mine[r] = fmaxf(mine[r], __shfl_xor_sync(0xffffffffu, mine[r], 2)) * problem.scale_log2();
    }
  }

  __device__ void make_probabilities(const float (&logits)[32]) {
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float a = exp2f(fmaf(logits[4 * j + 2 * r], problem.scale_log2(), -rows.subtrahend(r)));
        const float b = exp2f(fmaf(logits[4 * j + 2 * r + 1], problem.scale_log2(), -rows.subtrahend(r)));
        rows.sum[r] += a + b;
        p[2 * j + r] = pack_16<Problem::half>(a, b);
      }
#pragma unroll
    for (int j = 0; j < 8; j += 2) stmatrix_x4(at_matrix(j), p[2 * j], p[2 * j + 1], p[2 * j + 2], p[2 * j + 3]);
  }

  __device__ void publish_bases() const {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      if (pair == 0) put_shared(base + Shared::maxima + (warpgroup * 64 + row0 + 8 * r) * 4, rows.base_log2[r]);
    async_proxy_fence();
  }
  __device__ void raise_to_other() {
    float other[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) other[r] = get_shared(base + Shared::maxima + ((1 - warpgroup) * 64 + row0 + 8 * r) * 4);
    rows.raise(other);
  }

  __device__ void rescale() {
    if (!__any_sync(0xffffffffu, rows.correction[0] != 1.f || rows.correction[1] != 1.f)) return;
#pragma unroll
    for (int i = 0; i < 128; ++i) out[i] *= rows.correction[(i >> 1) & 1];
  }

  // Starts this warpgroup's columns of the product of block `source`; a group a stage.
  template <int source>
  __device__ void multiply_values() {
    if constexpr (Problem::source == RowSource::copied) async_proxy_fence();
    out.fence();
    wgmma_fence();
    const std::uint64_t values = swizzled_tile(base + Shared::keys + source * Shared::buffer_bytes + warpgroup * 4 * tile_bytes, tile_bytes);
    const std::uint64_t other_p = swizzled_tile(base + Shared::probabilities(1 - warpgroup));
#pragma unroll
    for (int step = 0; step < 4; ++step) {  // of 16 rows
      if constexpr (source == warpgroup) {
        const std::uint32_t a[4] = {p[4 * step], p[4 * step + 1], p[4 * step + 2], p[4 * step + 3]};
        out.template add<Problem::half>(a, tile_plus(values, step * 2048));
      } else {
        out.template add<Problem::half>(tile_plus(other_p, step * 32), tile_plus(values, step * 2048));
      }
      if (step & 1) wgmma_commit();
    }
  }
  template <int source>
  __device__ void hand_back() {
    constexpr bool together = source == 1 && Shared::shares_block_1;
    const std::uint32_t empty = full(source, 0) + stages * 8;
    wgmma_wait<1>();
    if (lane == 0 && !together) mbarrier_arrive(empty);
    wgmma_wait<0>();
    if (lane == 0 && together) mbarrier_arrive(empty);
    if (lane == 0) mbarrier_arrive(empty + 8);
    out.fence();
  }

  // Two blocks. next_item: whose query to load once nobody reads this one's any more; negative: none.
  __device__ void take_pair(std::uint32_t parity, const int (&limit)[2], int first, int next_item) {
    float logits[32], mine[2];
    mbarrier_wait(full(warpgroup, 0), parity);
    mbarrier_wait(full(warpgroup, 1), parity);
    multiply_keys(logits);
    if constexpr (Problem::source != RowSource::pages) hide_missing_rows(logits);
    if constexpr (Problem::causal) hide_later_rows(logits, limit, first + warpgroup * block_rows);
    find_maxima(logits, mine);
    if constexpr (warpgroup == 0) {
      rows.raise(mine);
      rescale();
      make_probabilities(logits);
      publish_bases();
      named_arrive(1, 256);
      multiply_values<0>();
      named_barrier(2, 256);  // the other P and maxima are there, and nobody reads Q any more
      hand_back<0>();
      raise_to_other();
    } else {
      named_barrier(1, 256);
      raise_to_other();
      rescale();
      multiply_values<0>();  // runs under the exponentials
      rows.raise(mine);
      make_probabilities(logits);
      publish_bases();
      hand_back<0>();
      named_arrive(2, 256);
    }
    rescale();
    if (next_item >= 0) load_query(problem, next_item, base + Shared::query);
    multiply_values<1>();
    hand_back<1>();
  }

  __device__ void finish(int item) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      rows.sum[r] += __shfl_xor_sync(0xffffffffu, rows.sum[r], 1);
      rows.sum[r] += __shfl_xor_sync(0xffffffffu, rows.sum[r], 2);
      if (pair == 0) put_shared(base + Shared::sums + (warpgroup * 64 + row0 + 8 * r) * 4, rows.sum[r]);
    }
    named_barrier(1, 256);
    float weight[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = row0 + 8 * r;
      const float total = rows.sum[r] + get_shared(base + Shared::sums + ((1 - warpgroup) * 64 + row) * 4);
      if (warpgroup == 0 && pair == 0) problem.store_lse(item, row, total > 0 ? rows.base_log2[r] + log2f(total) : minus_infinity);
      weight[r] = total > 0 ? problem.weight(item, row, total, rows.base_log2[r]) : 0.f;
    }
    if (problem.partial() || Shared::shares_block_1) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const OutputRow row = problem.output(item, row0 + 8 * r);
#pragma unroll
        for (int j = 0; j < 32; ++j)
          row.store(warpgroup * 256 + 8 * j + 2 * pair, out[4 * j + 2 * r] * weight[r], out[4 * j + 2 * r + 1] * weight[r]);
      }
    } else {
      store_whole_lines(item, weight);
    }
  }

  // Through this warpgroup's P buffer, 64 columns at a time. A warp reads its own rows.
  __device__ void store_whole_lines(int item, const float (&weight)[2]) {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      __syncwarp();
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        const int at = 4 * (8 * part + j);
        stmatrix_x4(at_matrix(j), pack_bf16(out[at] * weight[0], out[at + 1] * weight[0]), pack_bf16(out[at + 2] * weight[1], out[at + 3] * weight[1]),
                    pack_bf16(out[at + 4] * weight[0], out[at + 5] * weight[0]), pack_bf16(out[at + 6] * weight[1], out[at + 7] * weight[1]));
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = warp * 16 + 4 * i + (lane >> 3), chunk = lane & 7;
        const uint4 v = get_shared_16(own_p + row * 128 + ((chunk ^ (row & 7)) << 4));
        *reinterpret_cast<uint4*>(problem.output(item, row).values + warpgroup * 256 + part * 64 + chunk * 8) = v;
      }
    }
  }
};

template <int warpgroup, typename Problem>
__device__ inline void consume_rows(const Problem& problem, std::uint32_t base) {
  using Shared = LatentShared<Problem::qk_tiles>;
  const int items = problem.items();
  std::uint32_t parity = 0;
  if (static_cast<int>(blockIdx.x) < items) load_query(problem, blockIdx.x, base + Shared::query);
  for (int item = blockIdx.x; item < items; item += gridDim.x) {
    Consumer<warpgroup, Problem> consumer{problem, base};
#pragma unroll
    for (int i = 0; i < 128; ++i) consumer.out[i] = 0;
    cp_async_wait<0>();
    if constexpr (Problem::half) convert_query<Problem>(base + Shared::query);
    async_proxy_fence();
    named_barrier(1, 256);
    int limit[2] = {0, 0}, first = 0;
    if constexpr (Problem::causal) {
      first = problem.position(item, 0);
      for (int r = 0; r < 2; ++r) limit[r] = problem.limit(item, consumer.row0 + 8 * r);
    }
    const int blocks = problem.blocks(item);
    for (int block = 0; block < blocks; block += 2, parity ^= 1) {
      const int next = item + static_cast<int>(gridDim.x);
      consumer.take_pair(parity, limit, first + block * block_rows, block + 2 >= blocks && next < items ? next : -1);
    }
    consumer.finish(item);
  }
}

#endif

}  // namespace rackcast::kernels
