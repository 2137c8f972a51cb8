// Queries into shared memory, by the 256 consumer threads of the Hopper attention kernel.
#pragma once
#include "kernels/latent_sums_sm90.cuh"

namespace rackcast::kernels {

#if RACKCAST_HAVE_WGMMA

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

// After this thread's own copies have landed: bf16 to fp16 in place, several loads at a time.
template <typename Problem>
__device__ inline void convert_query(std::uint32_t query) {
  const int row = threadIdx.x >> 2, quarter = threadIdx.x & 3;
  constexpr int at_once = 8;
#pragma unroll 1
  for (int first = 0; first < 2 * Problem::qk_tiles; first += at_once) {
    uint4 v[at_once];
#pragma unroll
    for (int i = 0; i < at_once; ++i) v[i] = get_shared_16(query + chunk_offset(row, quarter + 4 * (first + i)));
#pragma unroll
    for (int i = 0; i < at_once; ++i)
      store_shared_16(query + chunk_offset(row, quarter + 4 * (first + i)), bf16x2_to_f16x2(v[i].x), bf16x2_to_f16x2(v[i].y), bf16x2_to_f16x2(v[i].z),
                      bf16x2_to_f16x2(v[i].w));
  }
}

// One thread, an item ahead: the rows of a tile lie behind one another.
template <typename Problem>
__device__ inline void prefetch_query(const Problem& problem, int item) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(problem.query(item, 0)), "r"(problem.query_rows(item) * Problem::qk_tiles * 128));
}

#endif

}  // namespace rackcast::kernels
