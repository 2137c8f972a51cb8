// What an item is to the latent attention kernels when rows come from an index list: a token, or one split of its rows.
#pragma once
#include "kernels/latent_kv.cuh"

namespace rackcast::kernels {

template <KvFormat format>
struct SparseProblem {
  static constexpr int qk_tiles = 8;
  static constexpr RowSource source = format == KvFormat::bf16 ? RowSource::copied : RowSource::converted;
  static constexpr bool half = source == RowSource::converted;
  static constexpr bool causal = false;
  static constexpr bool wide_products = source == RowSource::copied;
  static constexpr int consumer_registers = source == RowSource::copied ? 232 : 192;
  static constexpr int producer_registers = source == RowSource::copied ? 40 : 64;
  using Raw = RawRow<format>;
  LatentParams p;

  __device__ int items() const { return p.tokens * p.splits; }
  __device__ int blocks(int) const { return p.blocks_per_split; }
  __device__ int token(int item) const { return p.splits == 1 ? item : item / p.splits; }
  __device__ int split(int item) const { return p.splits == 1 ? 0 : item % p.splits; }
  __device__ int key(int item, int block) const { return (split(item) * p.blocks_per_split + block) * block_rows; }
  __device__ int slot(int item, int block, int row) const { return slot_of(p, token(item), key(item, block) + row); }
  __device__ bool selected(int item, int block) const { return key(item, block) >= p.window; }
  __device__ bool row_valid(int item, int block, int row) const { return slot(item, block, row) >= 0; }
  __device__ const LatentPools& pools() const { return p.pools; }
  __device__ const std::uint8_t* any_row() const { return p.pools.window; }
  __device__ const std::uint8_t* pool(int item, int block) const { return selected(item, block) ? p.pools.selected : p.pools.window; }
  __device__ const std::uint8_t* row_address(int item, int block, int row) const {
    const int s = slot(item, block, row);
    return s < 0 ? nullptr : (selected(item, block) ? p.pools.selected : p.pools.window) + static_cast<std::size_t>(s) * 1024;
  }
  __device__ const __nv_bfloat16* query(int item, int row) const {
    return p.q + (static_cast<std::size_t>(token(item)) * latent_heads + row) * latent_dims;
  }
  __device__ int query_rows(int) const { return latent_heads; }
  __device__ float scale_log2() const { return p.scale_log2; }
  __device__ float sink_log2(int row) const {  // splits leave it to the kernel that combines them
    return p.splits == 1 && p.sink ? __ldg(p.sink + row) * 1.44269504f : -__builtin_huge_valf();
  }
  __device__ bool partial() const { return p.splits > 1; }
  __device__ OutputRow output(int item, int row) const {  // item = token or split
    const std::size_t at = (static_cast<std::size_t>(item) * latent_heads + row) * latent_dims;
    if (p.splits > 1) return {nullptr, p.partial_out + at};
    return {p.out + at, nullptr};
  }
  __device__ void store_lse(int item, int row, float log2_sum) const {
    if (p.splits == 1) p.lse[item * latent_heads + row] = log2_sum * 0.69314718f;
    else p.partial_lse[item * latent_heads + row] = log2_sum;
  }
};

}  // namespace rackcast::kernels
