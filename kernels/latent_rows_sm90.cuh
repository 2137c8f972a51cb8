// The producers of the Hopper attention kernel: KV rows into shared memory, a stage at a time. Rows are converted by two
// warpgroups, copied row by row by one, or fetched page by page by one thread.
#pragma once
#include "kernels/latent_stages.cuh"

namespace rackcast::kernels {

#if RACKCAST_HAVE_WGMMA

// Converting warpgroup `half` does that half of every block, four threads a row. All that comes from memory is asked for
// right behind a hand-over, since the fence of the next one waits for it: the row of the next block into registers, the
// row after that into L2, and the slot of the row after that.
template <typename Problem>
__device__ inline void convert_rows(const Problem& problem, std::uint32_t base, int half) {
  const int quarter = threadIdx.x & 3, row = (threadIdx.x & 127) >> 2, row_of_block = half * stage_rows + row;
  BlockCursor<Problem> next{static_cast<int>(blockIdx.x)}, ahead = next;  // blocks of the slots below
  if (!next.more(problem)) return;
  typename Problem::Raw raw;
  const auto slot_at = [&](const BlockCursor<Problem>& at) { return at.more(problem) ? problem.slot(at.item, at.block, row_of_block) : -1; };
  int slot = slot_at(next), slot_ahead = -1;
  bool selected = problem.selected(next.item, 0), valid = slot >= 0;
  raw.load(problem.pools(), selected, slot, quarter);
  next.next(problem);
  ahead = next;
  slot = slot_at(next);
  ahead.next(problem);
  slot_ahead = slot_at(ahead);
  if (slot >= 0) Problem::Raw::prefetch(problem.pools(), problem.selected(next.item, next.block), slot, quarter);
  std::uint32_t parity = 1;  // the first wait on a fresh barrier passes
  for (int buffer = 0;; buffer ^= 1) {
    const Stage<Problem> stage(base, buffer, half);
    mbarrier_wait(stage.empty, parity);
    publish_mask<4>(stage.masks, row & ~7, valid);
    raw.store(stage.rows, selected, row, quarter);
    async_proxy_fence();
    mbarrier_arrive(stage.full);
    if (!next.more(problem)) return;
    selected = problem.selected(next.item, next.block);
    valid = slot >= 0;
    raw.load(problem.pools(), selected, slot, quarter);
    next.next(problem);
    slot = slot_ahead;
    if (slot >= 0) Problem::Raw::prefetch(problem.pools(), problem.selected(next.item, next.block), slot, quarter);
    ahead.next(problem);
    slot_ahead = slot_at(ahead);
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
      const std::uint8_t* from[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        int& slot = slots[2 * half + i];
        not_before_here(slot);
        publish_mask<8>(stage.masks, (row & ~3) + 16 * i, slot >= 0);
        from[i] = pool + static_cast<std::size_t>(slot >= 0 ? slot : 0) * (Problem::qk_tiles * 128) + eighth * 16;
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int tile = 0; tile < Problem::qk_tiles; ++tile)
          copy_of_line(stage.rows + within + i * 16 * 128 + tile * tile_bytes, from[i] + tile * 128, slots[2 * half + i] >= 0);
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

// One thread drives the copy engine. A block is one page of 64 rows. (Asking pages into L2 ahead of time costs a fifth of
// the rate: two block buffers are enough in flight, and what L2 holds for later it must also hold.)
template <typename Problem>
__device__ inline void fetch_pages(const Problem& problem, std::uint32_t base) {
  BlockCursor<Problem> now{static_cast<int>(blockIdx.x)};
  if ((threadIdx.x & 127) != 0 || !now.more(problem)) return;
  prefetch_tensor_map(problem.map());
  int page_row = problem.page_row(now.item, 0);
  std::uint32_t parity = 1;
  for (int buffer = 0;; buffer ^= 1) {
    now.next(problem);
    const bool more = now.more(problem);
    int next_page_row = more ? problem.page_row(now.item, now.block) : 0;  // asked for here, first looked at a block later
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Stage<Problem> stage(base, buffer, half);
      mbarrier_wait(stage.empty, parity);
#pragma unroll
      for (int tile = 0; tile < Problem::qk_tiles; ++tile) {
        const std::uint32_t full = stage.full + (tile < first_tiles ? 0 : 8);
        if (tile == 0) mbarrier_expect(full, first_tiles * stage_rows * 128);
        if (tile == first_tiles) mbarrier_expect(full, (Problem::qk_tiles - first_tiles) * stage_rows * 128);
        tensor_load(stage.rows + tile * tile_bytes, problem.map(), tile * 128, page_row + half * stage_rows, full, evict_normal);
      }
    }
    if (!more) return;
    not_before_here(next_page_row);
    page_row = next_page_row;
    if (buffer == 1) parity ^= 1;
  }
}

#endif

}  // namespace rackcast::kernels
