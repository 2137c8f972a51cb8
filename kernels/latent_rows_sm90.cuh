// The producers of the Hopper attention kernel: KV rows into shared memory, a stage at a time. Rows are converted by two
// warpgroups, copied row by row by one, or fetched page by page by one thread.
#pragma once
#include "kernels/latent_stages.cuh"

namespace rackcast::kernels {

#if RACKCAST_HAVE_WGMMA

// Converting warpgroup `half` does that half of every block, four threads a row. The next block's row waits in registers,
// the one after it is asked into L2, while the consumers hold the stage.
template <typename Problem>
__device__ inline void convert_rows(const Problem& problem, std::uint32_t base, int half) {
  const int quarter = threadIdx.x & 3, row = (threadIdx.x & 127) >> 2, row_of_block = half * stage_rows + row;
  BlockCursor<Problem> ahead{static_cast<int>(blockIdx.x)};
  if (!ahead.more(problem)) return;
  typename Problem::Raw raw;
  int slot = problem.slot(ahead.item, 0, row_of_block);  // of the block at `ahead`
  bool selected = problem.selected(ahead.item, 0);
  raw.load(problem.pools(), selected, slot, quarter);
  std::uint32_t parity = 1;  // the first wait on a fresh barrier passes
  for (int buffer = 0;; buffer ^= 1) {
    const bool valid = slot >= 0;
    ahead.next(problem);
    const bool more = ahead.more(problem);
    if (more) slot = problem.slot(ahead.item, ahead.block, row_of_block);
    const Stage<Problem> stage(base, buffer, half);
    mbarrier_wait(stage.empty, parity);
    publish_mask<4>(stage.masks, row & ~7, valid);
    if (more) Problem::Raw::prefetch(problem.pools(), problem.selected(ahead.item, ahead.block), slot, quarter);
    raw.store(stage.rows, selected, row, quarter);
    async_proxy_fence();
    mbarrier_arrive(stage.full);
    if (!more) return;
    selected = problem.selected(ahead.item, ahead.block);
    raw.load(problem.pools(), selected, slot, quarter);
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
      const Stage<Problem> stage(base, buffer, half);
      mbarrier_wait(stage.empty, parity);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        int& slot = slots[2 * half + i];
        not_before_here(slot);
        const bool valid = slot >= 0;
        publish_mask<8>(stage.masks, (row & ~3) + 16 * i, valid);
        const std::uint8_t* from = pool + static_cast<std::size_t>(valid ? slot : 0) * (Problem::qk_tiles * 128) + eighth * 16;
        const std::uint32_t target = stage.rows + within + i * 16 * 128;
#pragma unroll
        for (int tile = 0; tile < Problem::qk_tiles; ++tile) copy_of_line(target + tile * tile_bytes, from + tile * 128, valid);
      }
      mbarrier_arrive_after_copies(stage.full);
      mbarrier_arrive(stage.full);
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
      const Stage<Problem> stage(base, buffer, half);
      mbarrier_wait(stage.empty, parity);
      mbarrier_expect(stage.full, Problem::qk_tiles * stage_rows * 128);
#pragma unroll
      for (int tile = 0; tile < Problem::qk_tiles; ++tile)
        tensor_load(stage.rows + tile * tile_bytes, problem.map(), tile * 128, page_row + half * stage_rows, stage.full, evict_normal);
    }
    if (!more) return;
    not_before_here(next_page_row);
    page_row = next_page_row;
    problem.prefetch(page_row);  // from memory into L2, while its buffer is still in use
    if (buffer == 1) parity ^= 1;
    now = next;
  }
}

#endif

}  // namespace rackcast::kernels
