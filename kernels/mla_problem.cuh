// What an item is to the latent attention kernels in dense MLA: 64 query rows (tokens x heads) of one request against one
// split of its paged KV.
#pragma once
#include <cuda.h>

#include "kernels/latent_kv.cuh"
#include "kernels/launcher.hpp"
#include "kernels/mla_attention.hpp"

namespace rackcast::kernels {

struct MlaParams {
  const __nv_bfloat16* q = nullptr;            // [requests][query_tokens][heads][576]
  const std::uint8_t* kv = nullptr;            // pages of 64 rows x 576 bf16, all finite
  const std::int32_t* pages = nullptr;         // [requests][pages_per_request]
  const std::int32_t* lengths = nullptr;       // [requests]
  int requests = 0, query_tokens = 1, heads = 128, pages_per_request = 0;
  int pool_rows = 0;                           // rows of the whole pool
  int tiles = 1;                               // 64-row tiles of a request
  float scale_log2 = 0;
  int splits = 1;
  int blocks_per_split = 2;
  __nv_bfloat16* out = nullptr;                // [requests][query_tokens][heads][512]
  float* lse = nullptr;
  float* partial_out = nullptr;                // [requests][tiles][splits][64][512]
  float* partial_lse = nullptr;
};

struct MlaProblem {
  static constexpr int qk_tiles = 9;
  static constexpr RowSource source = RowSource::pages;
  static constexpr bool half = false;
  static constexpr bool causal = true;
  static constexpr bool wide_products = true;
  static constexpr int consumer_registers = 232;
  static constexpr int producer_registers = 40;
  struct Raw {};
  MlaParams p;
  CUtensorMap rows_map;  // rows of 1,152 B, boxes of 32 rows x 128 B; only for Hopper

  __device__ int items() const { return p.requests * p.tiles * p.splits; }
  __device__ int request(int item) const { return item / (p.tiles * p.splits); }
  // Tiles of a request are neighbours, so that they read its rows at about the same time.
  __device__ int tile(int item) const { return item % p.tiles; }
  __device__ int split(int item) const { return item / p.tiles % p.splits; }
  __device__ int group(int item) const { return request(item) * p.tiles + tile(item); }
  __device__ int position(int item, int block) const { return (split(item) * p.blocks_per_split + block) * block_rows; }
  __device__ int limit(int item, int row) const {
    return __ldg(p.lengths + request(item)) - p.query_tokens + (tile(item) * 64 + row) / p.heads + 1;
  }
  __device__ int blocks(int item) const {  // of this split, up to the last visible row
    const int visible = min(limit(item, 63), __ldg(p.lengths + request(item))) - position(item, 0);
    const int needed = (visible + 127) / 128 * 2;
    return max(2, min(needed, p.blocks_per_split));
  }
  __device__ bool row_valid(int item, int block, int row) const { return position(item, block) + row < __ldg(p.lengths + request(item)); }
  __device__ const std::uint8_t* any_row() const { return p.kv; }
  __device__ const std::uint8_t* row_address(int item, int block, int row) const {
    const int at = position(item, block) + row;
    if (at >= __ldg(p.lengths + request(item))) return nullptr;
    const int page = __ldg(p.pages + static_cast<std::size_t>(request(item)) * p.pages_per_request + at / page_rows);
    return p.kv + (static_cast<std::size_t>(page) * page_rows + at % page_rows) * (mla_qk_dims * 2);
  }
  __device__ const CUtensorMap* map() const { return &rows_map; }
  // First row of the block's page; beyond the pool (the map then gives zeros) when no row of the block is visible.
  __device__ int page_row(int item, int block) const {
    const int at = position(item, block);
    if (at >= __ldg(p.lengths + request(item))) return p.pool_rows;
    return __ldg(p.pages + static_cast<std::size_t>(request(item)) * p.pages_per_request + at / page_rows) * page_rows;
  }
  __device__ bool partial() const { return p.splits > 1; }
  __device__ int rows() const { return p.query_tokens * p.heads; }
  __device__ const __nv_bfloat16* query(int item, int row) const {
    const int r = tile(item) * 64 + row;
    return r < rows() ? p.q + (static_cast<std::size_t>(request(item)) * rows() + r) * mla_qk_dims : nullptr;
  }
  __device__ int query_rows(int item) const { return min(64, rows() - tile(item) * 64); }
  __device__ float scale_log2() const { return p.scale_log2; }
  __device__ float sink_log2(int) const { return -__builtin_huge_valf(); }
  __device__ OutputRow output(int item, int row) const {
    const int r = tile(item) * 64 + row;
    if (p.splits > 1) return {nullptr, p.partial_out + ((static_cast<std::size_t>(group(item)) * p.splits + split(item)) * 64 + row) * mla_value_dims};
    return {r < rows() ? p.out + (static_cast<std::size_t>(request(item)) * rows() + r) * mla_value_dims : nullptr, nullptr};
  }
  __device__ void store_lse(int item, int row, float log2_sum) const {
    const int r = tile(item) * 64 + row;
    if (p.splits > 1) p.partial_lse[(static_cast<std::size_t>(group(item)) * p.splits + split(item)) * 64 + row] = log2_sum;
    else if (r < rows()) p.lse[static_cast<std::size_t>(request(item)) * rows() + r] = log2_sum * 0.69314718f;
  }
};

void mla_attention_sm90(const MlaParams& params, int sm_count, Stream stream);
void mla_attention_portable(const MlaParams& params, Stream stream);

}  // namespace rackcast::kernels
