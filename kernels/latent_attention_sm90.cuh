// The Hopper kernel behind sparse latent attention and dense MLA: 64 query rows against blocks of 64 KV rows, K = V.
//
// One CTA an SM walks over work items. Warpgroups 0 and 1 compute, warpgroup 2 brings 16-bit KV rows into two block
// buffers, half a block (a stage, 32 rows) at a time. Blocks come in pairs: warpgroup w multiplies Q with block w (64x64
// logits), and each accumulates its half of the 512 output columns over both blocks. Warpgroup 0 goes first: it puts its
// probabilities and row maxima into shared memory and starts on block 0's values; warpgroup 1 does the same product while
// it takes its exponentials against the larger of both maxima, then both go on with block 1. A stage is handed back as
// soon as both have read its values, so that the next rows are fetched and converted under the products that follow.
//
// Problem (a struct passed by value) says what an item is:
//   static constexpr int qk_tiles       64-value tiles of a query row: 8 (512) or 9 (576, the last one has no value part)
//   static constexpr RowSource source   how rows come: converted to fp16 through Raw, bf16 rows copied one by one, or
//                                       boxes of a tensor map
//   static constexpr bool half          products are fp16 (exact for fp8 and fp4 rows, and cheaper to convert to), else bf16
//   static constexpr bool causal        rows beyond limit() are masked; otherwise rows without a slot are
//   static constexpr int consumer_registers, producer_registers
//   int items(), int blocks(item)       blocks of an item: even, at least 2
//   const bf16* query(item, row)        null: padding row
//   int limit(item, row)                KV rows visible to this query row (causal)
//   bf16* out_row(item, row)            null: outputs are partial and go through store(item, row, column, a, b)
//   void store_lse(item, row, log2)
#pragma once
#include "kernels/latent_kv.cuh"
#include "kernels/wgmma.cuh"

namespace rackcast::kernels {

constexpr int stage_rows = 32;
constexpr int stages = 4;  // two a block

constexpr int latent_threads = 384;  // more would leave the compiler too few registers for 64x256 accumulators

template <int qk_tiles>
struct LatentShared {
  static constexpr int buffer_bytes = qk_tiles * tile_bytes;
  static constexpr int query = 0;
  static constexpr int keys = buffer_bytes;                      // two buffers
  static constexpr int exchange = keys + 2 * buffer_bytes;       // P of both warpgroups, or of warpgroup 0 alone
  static constexpr int maxima = exchange + (qk_tiles == 8 ? 2 : 1) * tile_bytes;  // float [2][64]
  static constexpr int sums = maxima + 512;                      // float [2][64]
  static constexpr int masks = sums + 512;                       // bytes [stages][8], see mask_bit
  static constexpr int barriers = masks + 8 * stages;            // full[stages], empty[stages]
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

// Bits of a stage's rows: 8 rows a byte when four threads hold a row, 4 rows a byte when eight do.
template <int threads_per_row>
__device__ inline void publish_mask(std::uint32_t masks, int stage, int first_row_of_warp, bool valid) {
  constexpr int rows = 32 / threads_per_row;
  const unsigned votes = __ballot_sync(0xffffffffu, valid);
  if ((threadIdx.x & 31) != 0) return;
  unsigned byte = 0;
#pragma unroll
  for (int r = 0; r < rows; ++r) byte |= (votes >> (threads_per_row * r) & 1u) << r;
  asm volatile("st.shared.u8 [%0], %1;" ::"r"(masks + stage * 8 + first_row_of_warp / rows), "r"(byte) : "memory");
}

// Keeps the compiler from looking at a loaded value before this point, which would wait for the load.
__device__ inline void not_before_here(int& value) { asm volatile("" : "+r"(value)); }

// Rows of the next block wait in registers, and the slots of the block after it, while this one is converted.
template <typename Problem>
__device__ inline void convert_rows(const Problem& problem, std::uint32_t base) {
  using Shared = LatentShared<Problem::qk_tiles>;
  const int thread = threadIdx.x & 127, quarter = thread & 3, row = thread >> 2;  // and row + 32
  // One cursor only: registers are short here, and a spilled slot would be waited for at once.
  BlockCursor<Problem> ahead{static_cast<int>(blockIdx.x)};
  if (!ahead.more(problem)) return;
  typename Problem::Raw raw[2];
  int next_slots[2] = {-1, -1};
  unsigned valid = 0;  // a bit a half
  bool selected = problem.selected(ahead.item, 0), next_selected = false;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int slot = problem.slot(ahead.item, 0, row + 32 * half);
    raw[half].load(problem.pools(), selected, slot, quarter);
    valid |= static_cast<unsigned>(slot >= 0) << half;
  }
  ahead.next(problem);
  bool more = ahead.more(problem);
  if (more) {
    next_selected = problem.selected(ahead.item, ahead.block);
#pragma unroll
    for (int half = 0; half < 2; ++half) next_slots[half] = problem.slot(ahead.item, ahead.block, row + 32 * half);
    ahead.next(problem);
  }
  std::uint32_t parity = 1;  // the first wait on a fresh barrier passes
  for (int buffer = 0;; buffer ^= 1) {
    const bool after = more && ahead.more(problem);
    int after_slots[2] = {-1, -1};  // asked for here and first looked at when this block is done
    if (after)
#pragma unroll
      for (int half = 0; half < 2; ++half) after_slots[half] = problem.slot(ahead.item, ahead.block, row + 32 * half);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int stage = 2 * buffer + half;
      const std::uint32_t full = base + Shared::barriers + stage * 8, empty = full + stages * 8;
      mbarrier_wait(empty, parity);
      publish_mask<4>(base + Shared::masks, stage, row & ~7, (valid >> half & 1u) != 0);
      raw[half].store(base + Shared::keys + buffer * Shared::buffer_bytes, selected, row + 32 * half, quarter);
      async_proxy_fence();
      mbarrier_arrive(full);
      if (more) raw[half].load(problem.pools(), next_selected, next_slots[half], quarter);
    }
    if (!more) return;
    valid = static_cast<unsigned>(next_slots[0] >= 0) | static_cast<unsigned>(next_slots[1] >= 0) << 1;
    selected = next_selected;
    more = after;
    if (after) {
      next_selected = problem.selected(ahead.item, ahead.block);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        not_before_here(after_slots[half]);
        next_slots[half] = after_slots[half];
        Problem::Raw::prefetch(problem.pools(), next_selected, next_slots[half], quarter);
      }
      ahead.next(problem);
    }
    if (buffer == 1) parity ^= 1;
  }
}

__device__ inline void copy_of_line(std::uint32_t shared, const void* global, bool valid) {  // L2 fetches the whole line
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes));
}

// Eight threads a row: a warp's copies are whole 128-byte lines. Slots are asked for one block ahead.
template <typename Problem>
__device__ inline void copy_rows(const Problem& problem, std::uint32_t base) {
  using Shared = LatentShared<Problem::qk_tiles>;
  const int thread = threadIdx.x & 127, eighth = thread & 7, row = thread >> 3;  // and row + 16
  BlockCursor<Problem> now{static_cast<int>(blockIdx.x)};
  if (!now.more(problem)) return;
  int slots[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) slots[i] = problem.slot(now.item, 0, row + 16 * i);
  const std::uint32_t within = row * 128 + ((eighth ^ (row & 7)) << 4);  // row + 16 has the same swizzle
  std::uint32_t parity = 1;
  for (int buffer = 0;; buffer ^= 1) {
    BlockCursor<Problem> next = now;
    next.next(problem);
    const bool more = next.more(problem);
    int next_slots[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) next_slots[i] = more ? problem.slot(next.item, next.block, row + 16 * i) : -1;
    const std::uint8_t* pool = problem.pool(now.item, now.block);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int stage = 2 * buffer + half;
      const std::uint32_t full = base + Shared::barriers + stage * 8, empty = full + stages * 8;
      mbarrier_wait(empty, parity);
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        not_before_here(slots[i]);
        const bool valid = slots[i] >= 0;
        publish_mask<8>(base + Shared::masks, stage, (row & ~3) + 16 * (i & 1), valid);
        const std::uint8_t* from = pool + static_cast<std::size_t>(valid ? slots[i] : 0) * (Problem::qk_tiles * 128) + eighth * 16;
        const std::uint32_t target = base + Shared::keys + buffer * Shared::buffer_bytes + within + i * 16 * 128;
#pragma unroll
        for (int tile = 0; tile < Problem::qk_tiles; ++tile) copy_of_line(target + tile * tile_bytes, from + tile * 128, valid);
      }
      mbarrier_arrive_after_copies(full);
      mbarrier_arrive(full);
    }
    if (!more) return;
#pragma unroll
    for (int i = 0; i < 4; ++i) slots[i] = next_slots[i];
    if (buffer == 1) parity ^= 1;
    now = next;
  }
}

// One thread drives the copy engine. A block is one page of 64 rows.
template <typename Problem>
__device__ inline void fetch_pages(const Problem& problem, std::uint32_t base) {
  using Shared = LatentShared<Problem::qk_tiles>;
  BlockCursor<Problem> now{static_cast<int>(blockIdx.x)};
  if ((threadIdx.x & 127) != 0 || !now.more(problem)) return;
  int page_row = problem.page_row(now.item, 0);
  std::uint32_t parity = 1;
  for (int buffer = 0;; buffer ^= 1) {
    BlockCursor<Problem> next = now;
    next.next(problem);
    const bool more = next.more(problem);
    int next_page_row = more ? problem.page_row(next.item, next.block) : 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int stage = 2 * buffer + half;
      const std::uint32_t full = base + Shared::barriers + stage * 8, empty = full + stages * 8;
      mbarrier_wait(empty, parity);
      mbarrier_expect_bytes(full, Problem::qk_tiles * stage_rows * 128);
      const std::uint32_t target = base + Shared::keys + buffer * Shared::buffer_bytes + half * stage_rows * 128;
#pragma unroll
      for (int tile = 0; tile < Problem::qk_tiles; ++tile) tensor_copy(target + tile * tile_bytes, problem.map(), tile * 128, page_row + half * stage_rows, full);
    }
    if (!more) return;
    not_before_here(next_page_row);
    page_row = next_page_row;
    problem.prefetch(page_row);  // from memory into L2, while its buffer is still in use
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

// After this thread's own copies have landed: bf16 to fp16 in place.
template <typename Problem>
__device__ inline void convert_query(std::uint32_t query) {
  const int row = threadIdx.x >> 2, quarter = threadIdx.x & 3;
#pragma unroll 8
  for (int i = 0; i < 2 * Problem::qk_tiles; ++i) {
    const std::uint32_t address = query + chunk_offset(row, quarter + 4 * i);
    uint4 v;
    asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address) : "memory");
    store_shared_16(address, bf16x2_to_f16x2(v.x), bf16x2_to_f16x2(v.y), bf16x2_to_f16x2(v.z), bf16x2_to_f16x2(v.w));
  }
}

// One warpgroup's half: logits of its block, probabilities of both, 256 output columns.
template <int warpgroup, typename Problem>
__device__ inline void consume_rows(const Problem& problem, std::uint32_t base) {
  using Shared = LatentShared<Problem::qk_tiles>;
  const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3, pair = lane & 3;
  const int row0 = warp * 16 + (lane >> 2);  // this thread's rows are row0 and row0 + 8
  const std::uint32_t full = base + Shared::barriers, empty = full + stages * 8, query = base + Shared::query;
  const std::uint32_t own_keys = base + Shared::keys + warpgroup * Shared::buffer_bytes;
  const std::uint32_t own_p = base + Shared::probabilities(warpgroup), other_p = base + Shared::probabilities(1 - warpgroup);
  const std::uint32_t maxima = base + Shared::maxima, sums = base + Shared::sums;
  const std::uint32_t matrix_row = (warp * 16 + (lane & 15)) * 128;  // of this lane in stmatrix: rows 0-7, 8-15, twice
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
    if constexpr (Problem::half) convert_query<Problem>(query);
    async_proxy_fence();
    named_barrier(1, 256);

    float correction[2] = {1, 1}, base_log2[2] = {0, 0};
    const auto raise_maximum = [&](const float (&to)[2]) {  // what was summed so far is to be multiplied by correction
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float next = fmaxf(largest[r], to[r]);
        base_log2[r] = next == minus_infinity ? 0.f : next;
        correction[r] = exp2f(largest[r] - base_log2[r]);
        largest[r] = next;
        sum[r] *= correction[r];
      }
    };
    const auto rescale = [&](bool anything) {
      if (anything && __any_sync(0xffffffffu, correction[0] != 1.f || correction[1] != 1.f)) {
#pragma unroll
        for (int i = 0; i < 128; ++i) out[i] *= correction[(i >> 1) & 1];
      }
    };
    const auto make_probabilities = [&](const float (&logits)[32], std::uint32_t (&p)[16]) {
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float a = exp2f(fmaf(logits[4 * j + 2 * r], problem.scale_log2(), -base_log2[r]));
          const float b = exp2f(fmaf(logits[4 * j + 2 * r + 1], problem.scale_log2(), -base_log2[r]));
          sum[r] += a + b;
          p[2 * j + r] = pack_16<Problem::half>(a, b);
        }
#pragma unroll
      for (int j = 0; j < 8; j += 2) stmatrix_x4(own_p + matrix_row + (((j + (lane >> 4)) ^ (lane & 7)) << 4), p[2 * j], p[2 * j + 1], p[2 * j + 2], p[2 * j + 3]);
    };
    const auto publish = [&](int whose) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
        if (pair == 0) put(maxima + (whose * 64 + row0 + 8 * r) * 4, largest[r]);
      async_proxy_fence();
    };
    const auto read_maxima = [&](int whose, float (&to)[2]) {
#pragma unroll
      for (int r = 0; r < 2; ++r) to[r] = get(maxima + (whose * 64 + row0 + 8 * r) * 4);
    };
    // Starts this warpgroup's columns of the product of block `source`; a group a stage.
    const auto multiply_values = [&](int source, const std::uint32_t (&p)[16]) {
      if constexpr (Problem::source == RowSource::copied) async_proxy_fence();
      accumulators_fence(out);
      wgmma_fence();
      const std::uint32_t values = base + Shared::keys + source * Shared::buffer_bytes + warpgroup * 4 * tile_bytes;
#pragma unroll
      for (int step = 0; step < 4; ++step) {  // of 16 rows
        const std::uint64_t rows = tile_descriptor(values + step * 2048, tile_bytes);
        if (source == warpgroup) {  // known when inlined
          const std::uint32_t a[4] = {p[4 * step], p[4 * step + 1], p[4 * step + 2], p[4 * step + 3]};
          wgmma_n256_values<Problem::half>(out, a, rows, true);
        } else {
          wgmma_n256_values_shared<Problem::half>(out, tile_descriptor(other_p + step * 32), rows, true);
        }
        if (step & 1) wgmma_commit();
      }
    };
    const auto hand_back = [&](int source) {
      const std::uint32_t stage = empty + 2 * source * 8;
      const bool together = source == 1 && Shared::shares_block_1;
      wgmma_wait<1>();
      if (lane == 0 && !together) mbarrier_arrive(stage);
      wgmma_wait<0>();
      if (lane == 0 && together) mbarrier_arrive(stage);
      if (lane == 0) mbarrier_arrive(stage + 8);
      accumulators_fence(out);
    };

    const int blocks = problem.blocks(item);
    for (int block = 0; block < blocks; block += 2, parity ^= 1) {
      float logits[32];
      mbarrier_wait(full + 2 * warpgroup * 8, parity);
      mbarrier_wait(full + (2 * warpgroup + 1) * 8, parity);
      if constexpr (Problem::source == RowSource::copied) async_proxy_fence();
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < 4 * Problem::qk_tiles; ++step) {
        const std::uint32_t offset = (step >> 2) * tile_bytes + (step & 3) * 32;
        wgmma_n64<Problem::half>(logits, tile_descriptor(query + offset), tile_descriptor(own_keys + offset), step != 0);
      }
      wgmma_commit();
      wgmma_wait<0>();
      accumulators_fence(logits);

      if constexpr (Problem::source != RowSource::pages) {
        constexpr int words = Problem::source == RowSource::converted ? 1 : 2, rows_per_byte = 8 / words;
        constexpr std::uint32_t all = words == 1 ? 0xffffffffu : 0x0f0f0f0fu;
        std::uint32_t mask[2][2];  // of the block's two stages
#pragma unroll
        for (int half = 0; half < 2; ++half)
          asm volatile("ld.shared.v2.b32 {%0,%1}, [%2];"
                       : "=r"(mask[half][0]), "=r"(mask[half][1]) : "r"(base + Shared::masks + (2 * warpgroup + half) * 8) : "memory");
        if (mask[0][0] != all || mask[1][0] != all || (words == 2 && (mask[0][1] != all || mask[1][1] != all))) {
#pragma unroll
          for (int i = 0; i < 32; ++i) {
            const int tile_row = 8 * ((i >> 2) & 3), row = tile_row + 2 * pair + (i & 1);  // in its stage
            const std::uint32_t word = mask[i >> 4][words == 2 ? (tile_row >> 4) : 0];
            const int byte = row / rows_per_byte % 4;
            if (!((word >> (8 * byte + row % rows_per_byte)) & 1u)) logits[i] = minus_infinity;
          }
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

      float mine[2] = {minus_infinity, minus_infinity};  // of this block, in log2 units
#pragma unroll
      for (int i = 0; i < 32; ++i) mine[(i >> 1) & 1] = fmaxf(mine[(i >> 1) & 1], logits[i]);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        mine[r] = fmaxf(mine[r], __shfl_xor_sync(0xffffffffu, mine[r], 1));
        mine[r] = fmaxf(mine[r], __shfl_xor_sync(0xffffffffu, mine[r], 2)) * problem.scale_log2();
      }
      std::uint32_t p[16];  // this block's probabilities: register operand of the four k steps
      const bool last = block + 2 >= blocks && item + static_cast<int>(gridDim.x) < problem.items();
      if constexpr (warpgroup == 0) {
        raise_maximum(mine);
        rescale(block > 0);
        make_probabilities(logits, p);
        publish(0);
        named_arrive(1, 256);
        multiply_values(0, p);
        named_barrier(2, 256);  // the other P and maxima are there, and nobody reads Q any more
        hand_back(0);
        read_maxima(1, mine);
        raise_maximum(mine);
        rescale(true);
        if (last) load_query(problem, item + gridDim.x, query);
        multiply_values(1, p);
        hand_back(1);
      } else {
        float other[2];
        named_barrier(1, 256);
        read_maxima(0, other);
        raise_maximum(other);
        rescale(block > 0);
        multiply_values(0, p);  // runs under the exponentials
        raise_maximum(mine);
        make_probabilities(logits, p);
        publish(1);
        hand_back(0);
        named_arrive(2, 256);
        rescale(true);
        if (last) load_query(problem, item + gridDim.x, query);
        multiply_values(1, p);
        hand_back(1);
      }
    }

#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
      if (pair == 0) put(sums + (warpgroup * 64 + row0 + 8 * r) * 4, sum[r]);
    }
    named_barrier(1, 256);
    float weight[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = row0 + 8 * r;
      const float total = sum[r] + get(sums + ((1 - warpgroup) * 64 + row) * 4);
      if (warpgroup == 0 && pair == 0) problem.store_lse(item, row, total > 0 ? largest[r] + log2f(total) : minus_infinity);
      weight[r] = total > 0 ? problem.weight(item, row, total, largest[r]) : 0.f;
    }
    if (problem.partial() || Shared::shares_block_1) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int j = 0; j < 32; ++j)
          problem.store(item, row0 + 8 * r, warpgroup * 256 + 8 * j + 2 * pair, out[4 * j + 2 * r] * weight[r], out[4 * j + 2 * r + 1] * weight[r]);
    } else {
      // Through this warpgroup's P buffer, 64 columns at a time, so that stores are whole lines. A warp reads its own rows.
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        __syncwarp();
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
          const int at = 4 * (8 * part + j);
          stmatrix_x4(own_p + matrix_row + (((j + (lane >> 4)) ^ (lane & 7)) << 4), pack_bf16(out[at] * weight[0], out[at + 1] * weight[0]),
                      pack_bf16(out[at + 2] * weight[1], out[at + 3] * weight[1]), pack_bf16(out[at + 4] * weight[0], out[at + 5] * weight[0]),
                      pack_bf16(out[at + 6] * weight[1], out[at + 7] * weight[1]));
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = warp * 16 + 4 * i + (lane >> 3), chunk = lane & 7;
          uint4 v;
          asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                       : "r"(own_p + row * 128 + ((chunk ^ (row & 7)) << 4)) : "memory");
          *reinterpret_cast<uint4*>(problem.out_row(item, row) + warpgroup * 256 + part * 64 + chunk * 8) = v;
        }
      }
    }
  }
}

#endif

template <typename Problem>
__global__ void __launch_bounds__(latent_threads, 1) latent_attention_sm90(const __grid_constant__ Problem problem) {
#if defined(RACKCAST_SM90_BODY)
  cudaTriggerProgrammaticLaunchCompletion();  // a combine kernel may take its place early; it waits for our end itself
  using Shared = LatentShared<Problem::qk_tiles>;
  extern __shared__ std::uint8_t shared_memory[];
  const std::uint32_t base = (shared_address(shared_memory) + 1023u) & ~1023u;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      mbarrier_init(base + Shared::barriers + stage * 8, Problem::source == RowSource::pages ? 1 : Problem::source == RowSource::copied ? 256 : 128);
      mbarrier_init(base + Shared::barriers + (stages + stage) * 8, 8);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int warpgroup = threadIdx.x >> 7;
  if (warpgroup == 2) {
    registers_decrease<Problem::producer_registers>();
    if constexpr (Problem::source == RowSource::pages) fetch_pages(problem, base);
    else if constexpr (Problem::source == RowSource::copied) copy_rows(problem, base);
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
