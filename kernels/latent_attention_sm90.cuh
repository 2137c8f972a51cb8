// The Hopper kernel behind sparse latent attention and dense MLA: 64 query rows against blocks of 64 KV rows, K = V.
//
// One CTA an SM walks over work items. Warpgroups 0 and 1 compute, warpgroup 2 brings KV rows as bf16 into two block
// buffers, half a block (a stage, 32 rows) at a time. Blocks come in pairs: warpgroup w multiplies Q with block w (64x64
// logits), both agree on the row maxima, swap their probabilities through shared memory, and each accumulates its half of
// the 512 output columns over both blocks, stage by stage: a stage is handed back as soon as both warpgroups have read
// its values, so that the next rows are fetched and converted under the products of the stages after it.
//
// Problem (a struct passed by value) says what an item is:
//   static constexpr int qk_tiles       64-value tiles of a query row: 8 (512) or 9 (576, the last one has no value part)
//   static constexpr bool direct        rows are bf16 and copied as they are, else they go through Raw
//   static constexpr int consumer_registers, producer_registers
//   int items(), int blocks(item)       blocks of an item: even, at least 2
//   const bf16* query(item, row)        null: padding row
//   int limit(item, row)                KV rows visible to this query row (only with causal)
//   void store(item, row, column, a, b) two neighbouring outputs;  void store_lse(item, row, log2)
#pragma once
#include "kernels/latent_kv.cuh"
#include "kernels/wgmma.cuh"

namespace rackcast::kernels {

constexpr int stage_rows = 32;
constexpr int stages = 4;  // two a block

template <int qk_tiles>
struct LatentShared {
  static constexpr int buffer_bytes = qk_tiles * tile_bytes;
  static constexpr int query = 0;
  static constexpr int keys = buffer_bytes;                      // two buffers
  static constexpr int exchange = keys + 2 * buffer_bytes;       // P of both warpgroups, or of warpgroup 0 alone
  static constexpr int maxima = exchange + (qk_tiles == 8 ? 2 : 1) * tile_bytes;  // float [2][64]
  static constexpr int sums = maxima + 512;                      // float [2][64]
  static constexpr int masks = sums + 512;                       // a bit a row: uint32 [stages]
  static constexpr int barriers = masks + 16;                    // full[stages], empty[stages]
  static constexpr int bytes = barriers + 2 * stages * 8 + 1024; // the base is rounded up to 1024
  // MLA has no room for P of warpgroup 1: it takes the 64 values of block 1 that are key only, and the block's two stages
  // are handed back together.
  static constexpr bool shares_block_1 = qk_tiles != 8;
  static constexpr int probabilities(int warpgroup) {
    return warpgroup == 1 && shares_block_1 ? keys + buffer_bytes + 8 * tile_bytes : exchange + warpgroup * tile_bytes;
  }
};

#if defined(RACKCAST_SM90_BODY)

// Where a producer is: blocks of items, in the order in which the consumers take them.
template <typename Problem>
struct BlockCursor {
  int item, block = 0;
  __device__ bool more(const Problem& problem) const { return item < problem.items(); }
  __device__ void next(const Problem& problem) {
    if (++block < problem.blocks(item)) return;
    block = 0;
    item += gridDim.x;
  }
};

// Four threads a row, eight rows a warp: their bits of the stage's mask.
__device__ inline void publish_mask(std::uint32_t masks, int stage, int row_in_stage, bool valid) {
  const unsigned votes = __ballot_sync(0xffffffffu, valid);
  if ((threadIdx.x & 31) != 0) return;
  unsigned byte = 0;
#pragma unroll
  for (int r = 0; r < 8; ++r) byte |= (votes >> (4 * r) & 1u) << r;
  asm volatile("st.shared.u8 [%0], %1;" ::"r"(masks + stage * 4 + row_in_stage / 8), "r"(byte) : "memory");
}

// Rows of the next block wait in registers, and the slots of the block after it, while this one is converted.
template <typename Problem>
__device__ inline void convert_rows(const Problem& problem, std::uint32_t base) {
  using Shared = LatentShared<Problem::qk_tiles>;
  const int thread = threadIdx.x & 127, quarter = thread & 3, row = thread >> 2;
  BlockCursor<Problem> now{static_cast<int>(blockIdx.x)}, next = now;
  if (!now.more(problem)) return;
  next.next(problem);
  typename Problem::Raw raw[2];  // of the two stages of a block
  int slots[2], next_slots[2] = {-1, -1};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    slots[half] = problem.slot(now.item, 0, half * stage_rows + row);
    if (next.more(problem)) next_slots[half] = problem.slot(next.item, next.block, half * stage_rows + row);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) raw[half].load(problem.pools(), problem.selected(now.item, 0), slots[half], quarter);
  std::uint32_t parity = 1;  // the first wait on a fresh barrier passes
  for (int buffer = 0;; buffer ^= 1) {
    const bool selected = problem.selected(now.item, now.block), more = next.more(problem);
    const bool next_selected = more && problem.selected(next.item, next.block);
    now = next;
    if (more) next.next(problem);
    const bool after = more && next.more(problem);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int stage = 2 * buffer + half;
      const std::uint32_t full = base + Shared::barriers + stage * 8, empty = full + stages * 8;
      mbarrier_wait(empty, parity);
      publish_mask(base + Shared::masks, stage, row, slots[half] >= 0);
      raw[half].store(base + Shared::keys + buffer * Shared::buffer_bytes, selected, half * stage_rows + row, quarter);
      async_proxy_fence();
      mbarrier_arrive(full);
      slots[half] = next_slots[half];
      if (more) raw[half].load(problem.pools(), next_selected, slots[half], quarter);
      if (after) next_slots[half] = problem.slot(next.item, next.block, half * stage_rows + row);
    }
    if (buffer == 1) parity ^= 1;
    if (!more) return;
  }
}

template <typename Problem>
__device__ inline void copy_rows(const Problem& problem, std::uint32_t base) {
  using Shared = LatentShared<Problem::qk_tiles>;
  const int thread = threadIdx.x & 127, quarter = thread & 3, row = thread >> 2;
  BlockCursor<Problem> now{static_cast<int>(blockIdx.x)};
  if (!now.more(problem)) return;
  const std::uint8_t* sources[2];  // of this block's two stages, found one block ahead
#pragma unroll
  for (int half = 0; half < 2; ++half) sources[half] = problem.row_address(now.item, 0, half * stage_rows + row);
  std::uint32_t parity = 1;
  for (int buffer = 0;; buffer ^= 1) {
    BlockCursor<Problem> next = now;
    next.next(problem);
    const bool more = next.more(problem);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int stage = 2 * buffer + half;
      const std::uint32_t full = base + Shared::barriers + stage * 8, empty = full + stages * 8;
      const std::uint8_t* source = sources[half];
      const std::uint8_t* from = source ? source + quarter * 16 : problem.any_row();
      mbarrier_wait(empty, parity);
      publish_mask(base + Shared::masks, stage, row, source != nullptr);
      const std::uint32_t target = base + Shared::keys + buffer * Shared::buffer_bytes;
#pragma unroll
      for (int i = 0; i < 2 * Problem::qk_tiles; ++i)
        cp_async_16(target + chunk_offset(half * stage_rows + row, quarter + 4 * i), from + (source ? i * 64 : 0), source != nullptr);
      mbarrier_arrive_after_copies(full);
      mbarrier_arrive(full);
      if (more) sources[half] = problem.row_address(next.item, next.block, half * stage_rows + row);
    }
    if (!more) return;
    if (buffer == 1) parity ^= 1;
    now = next;
  }
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

// One warpgroup's half: logits of its block, probabilities of both, 256 output columns.
template <int warpgroup, typename Problem>
__device__ inline void consume_rows(const Problem& problem, std::uint32_t base) {
  using Shared = LatentShared<Problem::qk_tiles>;
  const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3, group = lane >> 2, pair = lane & 3;
  const int row0 = warp * 16 + group;  // this thread's rows are row0 and row0 + 8
  const std::uint32_t full = base + Shared::barriers, empty = full + stages * 8, query = base + Shared::query;
  const std::uint32_t own_keys = base + Shared::keys + warpgroup * Shared::buffer_bytes;
  const std::uint32_t own_p = base + Shared::probabilities(warpgroup), other_p = base + Shared::probabilities(1 - warpgroup);
  const std::uint32_t maxima = base + Shared::maxima, sums = base + Shared::sums;
  constexpr float minus_infinity = -__builtin_huge_valf();
  std::uint32_t parity = 0;

  const auto put = [](std::uint32_t address, float value) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory"); };
  const auto get = [](std::uint32_t address) {
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
    return value;
  };

  if (static_cast<int>(blockIdx.x) < problem.items()) load_query(problem, blockIdx.x, query);
  for (int item = blockIdx.x; item < problem.items(); item += gridDim.x) {
    float out[128];
#pragma unroll
    for (int i = 0; i < 128; ++i) out[i] = 0;
    float largest[2] = {minus_infinity, minus_infinity}, sum[2] = {0, 0};
    cp_async_wait<0>();
    async_proxy_fence();
    named_barrier(1, 256);

    const int blocks = problem.blocks(item);
    for (int block = 0; block < blocks; block += 2, parity ^= 1) {
      float logits[32];
      mbarrier_wait(full + 2 * warpgroup * 8, parity);
      mbarrier_wait(full + (2 * warpgroup + 1) * 8, parity);
      if constexpr (Problem::direct) async_proxy_fence();
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < 4 * Problem::qk_tiles; ++step) {
        const std::uint32_t offset = (step >> 2) * tile_bytes + (step & 3) * 32;
        wgmma_bf16_n64(logits, tile_descriptor(query + offset), tile_descriptor(own_keys + offset), step != 0);
      }
      wgmma_commit();
      wgmma_wait<0>();
      accumulators_fence(logits);

      std::uint32_t mask[2];
      asm volatile("ld.shared.v2.b32 {%0,%1}, [%2];" : "=r"(mask[0]), "=r"(mask[1]) : "r"(base + Shared::masks + warpgroup * 8) : "memory");
      if ((mask[0] & mask[1]) != 0xffffffffu) {
#pragma unroll
        for (int i = 0; i < 32; ++i) {
          const int column = 8 * (i >> 2) + 2 * pair + (i & 1);
          if (!((mask[column >> 5] >> (column & 31)) & 1u)) logits[i] = minus_infinity;
        }
      }
      if constexpr (Problem::causal) {
        const int first = problem.position(item, block + warpgroup);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int visible = problem.limit(item, row0 + 8 * r) - first;
          if (visible < block_rows)
#pragma unroll
            for (int i = 0; i < 32; ++i)
              if (((i >> 1) & 1) == r && 8 * (i >> 2) + 2 * pair + (i & 1) >= visible) logits[i] = minus_infinity;
        }
      }

      float mine[2] = {minus_infinity, minus_infinity};
#pragma unroll
      for (int i = 0; i < 32; ++i) mine[(i >> 1) & 1] = fmaxf(mine[(i >> 1) & 1], logits[i]);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        mine[r] = fmaxf(mine[r], __shfl_xor_sync(0xffffffffu, mine[r], 1));
        mine[r] = fmaxf(mine[r], __shfl_xor_sync(0xffffffffu, mine[r], 2));
        if (pair == 0) put(maxima + (warpgroup * 64 + row0 + 8 * r) * 4, mine[r]);
      }
      named_barrier(1, 256);
      float correction[2], base_log2[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float both = fmaxf(mine[r], get(maxima + ((1 - warpgroup) * 64 + row0 + 8 * r) * 4)) * problem.scale_log2();
        const float next = fmaxf(largest[r], both);
        base_log2[r] = next == minus_infinity ? 0.f : next;
        correction[r] = exp2f(largest[r] - base_log2[r]);
        largest[r] = next;
        sum[r] *= correction[r];
      }
      std::uint32_t p[16];  // register operand of the four k steps
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float a = exp2f(fmaf(logits[4 * j + 2 * r], problem.scale_log2(), -base_log2[r]));
          const float b = exp2f(fmaf(logits[4 * j + 2 * r + 1], problem.scale_log2(), -base_log2[r]));
          sum[r] += a + b;
          const std::uint32_t bits = pack_bf16(a, b);
          p[2 * j + r] = bits;
          asm volatile("st.shared.b32 [%0], %1;" ::"r"(own_p + (row0 + 8 * r) * 128 + ((j ^ group) << 4) + pair * 4), "r"(bits) : "memory");
        }
      async_proxy_fence();
      if (block > 0 && __any_sync(0xffffffffu, correction[0] != 1.f || correction[1] != 1.f)) {
#pragma unroll
        for (int i = 0; i < 128; ++i) out[i] *= correction[(i >> 1) & 1];
      }
      named_barrier(2, 256);  // both P are in shared memory, and nobody reads Q any more

      if (block + 2 >= blocks && item + static_cast<int>(gridDim.x) < problem.items()) load_query(problem, item + gridDim.x, query);
      accumulators_fence(out);
      wgmma_fence();
#pragma unroll
      for (int stage = 0; stage < stages; ++stage) {
        const int source = stage / 2;  // block
        const std::uint32_t values = base + Shared::keys + source * Shared::buffer_bytes + warpgroup * 4 * tile_bytes;
#pragma unroll
        for (int step = 2 * (stage & 1); step < 2 * (stage & 1) + 2; ++step) {  // of 16 rows
          const std::uint64_t rows = tile_descriptor(values + step * 2048, tile_bytes);
          if (source == warpgroup) {  // known when unrolled
            const std::uint32_t a[4] = {p[4 * step], p[4 * step + 1], p[4 * step + 2], p[4 * step + 3]};
            wgmma_bf16_n256_values(out, a, rows, true);
          } else {
            wgmma_bf16_n256_values_shared(out, tile_descriptor(other_p + step * 32), rows, true);
          }
        }
        wgmma_commit();
      }
      wgmma_wait<3>();
      if (lane == 0) mbarrier_arrive(empty);
      wgmma_wait<2>();
      if (lane == 0) mbarrier_arrive(empty + 8);
      if constexpr (!Shared::shares_block_1) {
        wgmma_wait<1>();
        if (lane == 0) mbarrier_arrive(empty + 16);
      }
      wgmma_wait<0>();
      if (lane == 0) {
        if constexpr (Shared::shares_block_1) mbarrier_arrive(empty + 16);
        mbarrier_arrive(empty + 24);
      }
      accumulators_fence(out);
    }

#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
      if (pair == 0) put(sums + (warpgroup * 64 + row0 + 8 * r) * 4, sum[r]);
    }
    named_barrier(1, 256);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = row0 + 8 * r;
      const float total = sum[r] + get(sums + ((1 - warpgroup) * 64 + row) * 4);
      if (warpgroup == 0 && pair == 0) problem.store_lse(item, row, total > 0 ? largest[r] + log2f(total) : minus_infinity);
      const float weight = total > 0 ? problem.weight(item, row, total, largest[r]) : 0.f;
#pragma unroll
      for (int j = 0; j < 32; ++j)
        problem.store(item, row, warpgroup * 256 + 8 * j + 2 * pair, out[4 * j + 2 * r] * weight, out[4 * j + 2 * r + 1] * weight);
    }
  }
}

#endif

constexpr int latent_threads = 384;

template <typename Problem>
__global__ void __launch_bounds__(latent_threads, 1) latent_attention_sm90(const __grid_constant__ Problem problem) {
#if defined(RACKCAST_SM90_BODY)
  cudaTriggerProgrammaticLaunchCompletion();  // a combine kernel may take its place early; it waits for our end itself
  using Shared = LatentShared<Problem::qk_tiles>;
  extern __shared__ std::uint8_t shared_memory[];
  const std::uint32_t base = (shared_address(shared_memory) + 1023u) & ~1023u;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      mbarrier_init(base + Shared::barriers + stage * 8, Problem::direct ? 256 : 128);
      mbarrier_init(base + Shared::barriers + (stages + stage) * 8, 8);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int warpgroup = threadIdx.x >> 7;
  if (warpgroup == 2) {
    registers_decrease<Problem::producer_registers>();
    if constexpr (Problem::direct) copy_rows(problem, base);
    else convert_rows(problem, base);
  } else if (warpgroup == 1) {
    registers_increase<Problem::consumer_registers>();
    consume_rows<1>(problem, base);
  } else {
    registers_increase<Problem::consumer_registers>();
    consume_rows<0>(problem, base);
  }
#else
  __trap();
#endif
}

}  // namespace rackcast::kernels
