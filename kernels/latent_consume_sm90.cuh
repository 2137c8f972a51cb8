// The consumers of the Hopper attention kernel (latent_attention_sm90.cuh): one warpgroup's logits, softmax and half of the
// output columns.
#pragma once
#include "kernels/latent_query_sm90.cuh"
#include "kernels/latent_sums_sm90.cuh"

namespace rackcast::kernels {

#if RACKCAST_HAVE_WGMMA

// One warpgroup's half: logits of its block, probabilities of both, 256 output columns.
template <int warpgroup, typename Problem>
struct Consumer {
  using Shared = LatentShared<Problem>;
  const Problem& problem;
  const std::uint32_t base;
  const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3, pair = lane & 3;
  const int row0 = warp * 16 + (lane >> 2);  // this thread's rows are row0 and row0 + 8
  const std::uint32_t own_p = base + Shared::probabilities(warpgroup);
  const std::uint32_t matrix_row = (warp * 16 + (lane & 15)) * 128;  // of this lane in stmatrix: rows 0-7, 8-15, twice
  // Warpgroup 1 asks for its logits before it reads block 0's values, where rows come fast enough for that.
  static constexpr bool keys_first = Problem::source != RowSource::converted;
  OutputSums<Problem::wide_products> out;
  RowState rows;
  std::uint32_t p[16];  // this block's probabilities: register operand of the four k steps

  __device__ std::uint32_t at_matrix(int j) const { return own_p + matrix_row + (((j + (lane >> 4)) ^ (lane & 7)) << 4); }

  // As the block's columns arrive.
  __device__ void multiply_keys(float (&logits)[32], std::uint32_t parity) {
    const std::uint64_t query = swizzled_tile(base + Shared::query);
    const std::uint64_t keys = swizzled_tile(base + Shared::keys + warpgroup * Shared::buffer_bytes);
    const std::uint32_t full = base + Shared::full + 2 * warpgroup * Shared::groups * 8;
#pragma unroll
    for (int group = 0; group < Shared::groups; ++group) {
      mbarrier_wait(full + group * 8, parity);
      mbarrier_wait(full + (Shared::groups + group) * 8, parity);
      if constexpr (Problem::source == RowSource::copied) async_proxy_fence();
      wgmma_fence();
#pragma unroll
      for (int step = group * 4 * first_tiles; step < 4 * (group == Shared::groups - 1 ? Problem::qk_tiles : first_tiles); ++step) {
        const std::uint32_t offset = (step >> 2) * tile_bytes + (step & 3) * 32;
        wgmma_keys_64xNx16<Problem::half>(logits, tile_plus(query, offset), tile_plus(keys, offset), step != 0);
      }
      wgmma_commit();
    }
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
        const float a = power_of_two(fmaf(logits[4 * j + 2 * r], problem.scale_log2(), -rows.subtrahend(r)));
        const float b = power_of_two(fmaf(logits[4 * j + 2 * r + 1], problem.scale_log2(), -rows.subtrahend(r)));
        rows.sum[r] += a + b;
        p[2 * j + r] = pack_16<Problem::half>(a, b);
      }
  }

  __device__ std::uint32_t ready(int whose) const { return base + Shared::ready + whose * 8; }

  // Probabilities and bases, for the other warpgroup.
  __device__ void publish() const {
#pragma unroll
    for (int j = 0; j < 8; j += 2) stmatrix_x4(at_matrix(j), p[2 * j], p[2 * j + 1], p[2 * j + 2], p[2 * j + 3]);
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
  // The stages of block `source`, as their products end.
  template <int source>
  __device__ void hand_back() {
    const std::uint32_t empty = base + Shared::empty + 2 * source * 8;
    wgmma_wait<1>();
    mbarrier_arrive(empty);  // every lane: each has read row masks
    wgmma_wait<0>();
    mbarrier_arrive(empty + 8);
    out.fence();
  }
  // Two blocks. next_item: whose query to load once nobody reads this one's any more; negative: none.
  __device__ void take_pair(std::uint32_t parity, const int (&limit)[2], int first, int next_item) {
    float logits[32];
    if constexpr (warpgroup == 0) {
      float mine[2];
      find_logits(logits, mine, parity, limit, first);
      rows.raise(mine);
      rescale();
      make_probabilities(logits);
      publish();
      mbarrier_arrive(ready(0));
      multiply_values<0>();
      hand_back<0>();
      mbarrier_wait(ready(1), parity);  // the other P and maxima are there, and nobody reads Q any more
      raise_to_other();
    } else if constexpr (keys_first) {
      float mine[2];
      find_logits(logits, mine, parity, limit, first + block_rows);
      mbarrier_wait(ready(0), parity);
      raise_to_other();
      rescale();
      multiply_values<0>();  // runs under the exponentials
      rows.raise(mine);
      make_probabilities(logits);
      if constexpr (Shared::two_exchanges) publish();
      hand_back<0>();
      if constexpr (!Shared::two_exchanges) publish();
      mbarrier_arrive(ready(1));
    } else {
      mbarrier_wait(ready(0), parity);
      raise_to_other();
      rescale();
      multiply_values<0>();
      hand_back<0>();  // before block 1 is waited for: its rows may come long after the next block 0's could
      float mine[2];
      find_logits(logits, mine, parity, limit, first + block_rows);
      rows.raise(mine);
      make_probabilities(logits);
      publish();
      mbarrier_arrive(ready(1));
    }
    rescale();
    if (next_item >= 0) load_query(problem, next_item, base + Shared::query);
    multiply_values<1>();
    hand_back<1>();
  }

  // Logits of this warpgroup's block, masked, and their maxima.
  __device__ void find_logits(float (&logits)[32], float (&mine)[2], std::uint32_t parity, const int (&limit)[2], int first) {
    multiply_keys(logits, parity);
    if constexpr (Problem::source != RowSource::pages) hide_missing_rows(logits);
    if constexpr (Problem::causal) hide_later_rows(logits, limit, first);
    find_maxima(logits, mine);
  }

  __device__ void finish(int item) {
    const float sink_log2[2] = {problem.sink_log2(row0), problem.sink_log2(row0 + 8)};
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
      weight[r] = total > 0 ? 1.f / (total + power_of_two(sink_log2[r] - rows.base_log2[r])) : 0.f;
    }
    if (problem.partial() || Problem::qk_tiles != 8) {
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
  using Shared = LatentShared<Problem>;
  const int items = problem.items();
  std::uint32_t parity = 0;
  if (static_cast<int>(blockIdx.x) < items) load_query(problem, blockIdx.x, base + Shared::query);
  for (int item = blockIdx.x; item < items; item += gridDim.x) {
    cp_async_wait<0>();
    if constexpr (Problem::half) convert_query<Problem>(base + Shared::query);
    async_proxy_fence();
    named_barrier(1, 256);
    Consumer<warpgroup, Problem> consumer{problem, base};
#pragma unroll
    for (int i = 0; i < 128; ++i) consumer.out[i] = 0;
    if (warpgroup == 1 && (threadIdx.x & 127) == 0 && item + static_cast<int>(gridDim.x) < items)
      prefetch_query(problem, item + static_cast<int>(gridDim.x));
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
