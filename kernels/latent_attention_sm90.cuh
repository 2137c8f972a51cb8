// The Hopper kernel behind sparse latent attention and dense MLA: 64 query rows against blocks of 64 KV rows, K = V.
//
// One CTA an SM walks over work items. Warpgroups 0 and 1 compute, the others bring 16-bit KV rows into two block
// buffers, half a block (a stage, 32 rows) at a time. Blocks come in pairs: warpgroup w multiplies Q with block w (64x64
// logits), and each accumulates its half of the 512 output columns over both blocks. Warpgroup 0 goes first: it puts its
// probabilities and row bases into shared memory and starts on block 0's values; warpgroup 1 does the same product beside
// its own block's logits and exponentials, then both go on with block 1. A stage is handed back as soon as both have read
// its values, so that the next rows are fetched and converted under the products that follow.
//
// Problem (a struct passed by value) says what an item is:
//   static constexpr int qk_tiles       64-value tiles of a query row: 8 (512) or 9 (576, the last one has no value part)
//   static constexpr RowSource source   how rows come: converted to fp16 through Raw, bf16 rows copied one by one, or
//                                       boxes of a tensor map
//   static constexpr bool half          products are fp16 (exact for fp8 and fp4 rows, and cheaper to convert to), else bf16
//   static constexpr bool causal        rows beyond limit() are masked; otherwise rows without a slot are
//   static constexpr bool wide_products 64x256 products of values; else two of 64x128, which a kernel of 512 threads needs
//   static constexpr int consumer_registers, producer_registers
//   int items(), int blocks(item)       blocks of an item: even, at least 2
//   const bf16* query(item, row)        null: padding row; rows of an item lie behind one another
//   int query_rows(item)                without padding
//   int limit(item, row)                KV rows visible to this query row (causal)
//   OutputRow output(item, row)         where the row's values go
//   bool partial()                      outputs are partial
//   float sink_log2(row)                -infinity: none
//   void store_lse(item, row, log2)
#pragma once
#include "kernels/latent_consume_sm90.cuh"
#include "kernels/latent_rows_sm90.cuh"

namespace rackcast::kernels {

template <typename Problem>
constexpr int latent_threads = Problem::source == RowSource::converted ? 512 : 384;

template <typename Problem>
__global__ void __launch_bounds__(latent_threads<Problem>, 1) latent_attention_sm90(const __grid_constant__ Problem problem) {
#if RACKCAST_HAVE_WGMMA
  cudaTriggerProgrammaticLaunchCompletion();  // a combine kernel may take its place early; it waits for our end itself
  using Shared = LatentShared<Problem>;
  extern __shared__ std::uint8_t shared_memory[];
  const std::uint32_t base = (shared_address(shared_memory) + 1023u) & ~1023u;
  if (threadIdx.x == 0) {
    constexpr int fillers = Problem::source == RowSource::pages ? 1 : Problem::source == RowSource::copied ? 256 : 128;
    for (int i = 0; i < stages * Shared::groups; ++i) mbarrier_init(base + Shared::full + i * 8, fillers);
    for (int i = 0; i < stages; ++i) mbarrier_init(base + Shared::empty + i * 8, 256);
    for (int i = 0; i < 2; ++i) mbarrier_init(base + Shared::ready + i * 8, 128);
    mbarrier_init_fence();
  }
  __syncthreads();
  const int warpgroup = threadIdx.x >> 7;
  if (warpgroup >= 2) {
    registers_down<Problem::producer_registers>();
    if constexpr (Problem::source == RowSource::pages) fetch_pages(problem, base);
    else if constexpr (Problem::source == RowSource::copied) copy_rows(problem, base);
    else convert_rows(problem, base, warpgroup - 2);
  } else if (warpgroup == 1) {
    registers_up<Problem::consumer_registers>();
    consume_rows<1>(problem, base);
  } else {
    registers_up<Problem::consumer_registers>();
    consume_rows<0>(problem, base);
  }
#else
  __trap();
#endif
}

}  // namespace rackcast::kernels
