// The grouped expert product (moe_gemm_device.hpp) as one persistent kernel: a producer thread streams tiles of weights and
// tokens through a ring of shared-memory stages, two consumer warpgroups multiply. Weights are the 64-row operand and
// tokens the narrow one (8 to 128 wide, by the tile's real token count), so few tokens waste no products.
// Sums over 128 of K are scaled and added in fp32 outside the tensor cores.
// Floors on an H200 at 4.3 TB/s: fp8 weights of one V4-Flash expert (25.2 MB) 5.9 us; 512 tokens an expert 6.5 us at
// 1,979 TFLOPS. A 256 x 128 tile moves 171 FLOP a byte out of L2 (205 or 256 when a pair of CTAs shares tokens or weights).
#pragma once
#include "kernels/moe_gemm_device.hpp"
#include "kernels/moe_gemm_epilogue.cuh"
#include "kernels/moe_gemm_math.cuh"
#include "kernels/moe_gemm_schedule.cuh"

namespace rackcast::kernels {

template <bool SwiGlu, bool Fp4, int ClusterSize, typename ProductKind, int MaxTokenCount>
struct GroupedConfig {
  static constexpr bool swiglu = SwiGlu;
  static constexpr bool fp4 = Fp4;
  static constexpr int cluster = ClusterSize;
  static constexpr int max_tokens = MaxTokenCount;
  using Product = ProductKind;
  using Schedule = GroupedSchedule<cluster, max_tokens>;
  // Tiles of more than 64 tokens take tokens as the 64-row operand: one scale a row then serves 64 products of a thread.
  static constexpr bool wide_tiles = !fp4 && Product::asynchronous;
  static constexpr int weight_bytes = fp4 ? 16 * 1024 + 1024 : tile_rows * 128;
  static constexpr int token_bytes = max_tokens * 128;
  static constexpr int scale_bytes = max_tokens * 4;
  static constexpr int stage_bytes = weight_bytes + token_bytes;
  static constexpr int fixed_bytes = static_cast<int>(sizeof(GroupedPlan)) + 256 + (swiglu ? EpilogueShared<max_tokens>::bytes : wide_tiles ? WideBf16Shared::bytes : 0);
  static constexpr int available = 227 * 1024 - 1024 - fixed_bytes;  // 1,024: aligning the first stage
  // Two consumer warpgroups, then the producer: a warpgroup where registers are moved between roles, else one warp.
  static constexpr int threads = Product::asynchronous ? 384 : 288;
  static constexpr int stages = available / (stage_bytes + scale_bytes) < 8 ? available / (stage_bytes + scale_bytes) : 8;
  static constexpr int shared_bytes = 1024 + fixed_bytes + stages * (stage_bytes + scale_bytes);
  static_assert(stages >= 3);
};

template <typename C>
struct GroupedShared {  // addresses
  std::uint32_t stages, scales, full, empty;
  std::uint8_t* epilogue;
  GroupedPlan* plan;
  __device__ explicit GroupedShared(std::uint8_t* raw) {
    const std::uint32_t start = shared_address(raw);
    stages = (start + 1023) & ~1023u;
    std::uint8_t* rest = raw + (stages - start) + C::stages * C::stage_bytes;
    scales = shared_address(rest);
    rest += C::stages * C::scale_bytes;
    full = shared_address(rest);
    empty = full + 8 * 8;
    rest += 256;
    plan = reinterpret_cast<GroupedPlan*>(rest);
    epilogue = rest + sizeof(GroupedPlan);
  }
};

struct RingPosition {
  int stage = 0;
  unsigned parity = 0;
  template <int Stages>
  __device__ void advance() {
    if (++stage == Stages) stage = 0, parity ^= 1;
  }
};

// The same in every thread of a warp, and the compiler knows it.
__device__ inline int warpgroup() { return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0); }

__device__ inline int tokens_wide(int tokens) { return tokens <= 8 ? 8 : tokens <= 16 ? 16 : tokens <= 32 ? 32 : tokens <= 64 ? 64 : 128; }

template <typename C>
__device__ void produce(const GroupedProduct& product, const GroupedShared<C>& shared, typename C::Schedule schedule, unsigned rank) {
  RingPosition ring;
  GroupedTile tile;
  const int blocks = product.depth / 128;
  const int weight_tiles = product.weight_rows / tile_rows;
  while (schedule.next(tile)) {
    const int width = tokens_wide(tile.tokens);
    const int box_rows = width >= 64 ? 64 : 8;
    const int boxes = (tile.tokens + box_rows - 1) / box_rows;
    const CUtensorMap* token_map = width >= 64 ? &product.tokens_by_64 : &product.tokens_by_8;
    const std::uint64_t weight_policy = tile.tokens <= 64 ? evict_first : evict_normal;
    const int weight_row = tile.expert * product.weight_rows + tile.weight_tile * tile_rows;
    const bool share_tokens = C::cluster == 2 && !tile.share_weights;
    for (int block = 0; block < blocks; ++block) {
      const std::uint32_t weights = shared.stages + ring.stage * C::stage_bytes, tokens = weights + C::weight_bytes;
      const std::uint32_t full = shared.full + ring.stage * 8;
      mbarrier_wait(shared.empty + ring.stage * 8, ring.parity ^ 1);
      mbarrier_expect(full, static_cast<unsigned>(C::weight_bytes + boxes * box_rows * 128 + width * 4));
      if constexpr (C::fp4) {
        const std::size_t chunk = (static_cast<std::size_t>(tile.expert) * weight_tiles + tile.weight_tile) * blocks + block;
        bulk_load(weights, product.packed + chunk * C::weight_bytes, C::weight_bytes, full, weight_policy);
      } else if (C::cluster == 2 && tile.share_weights) {
        tensor_load_multicast(weights + rank * 16384, &product.weights, block * 128, weight_row + static_cast<int>(rank) * 128, full, 3, weight_policy);
      } else {
        tensor_load(weights, &product.weights, block * 128, weight_row, full, weight_policy);
        tensor_load(weights + 16384, &product.weights, block * 128, weight_row + 128, full, weight_policy);
      }
      for (int box = 0; box < boxes; ++box) {
        const std::uint32_t to = tokens + box * box_rows * 128;
        const int row = tile.token_row + box * box_rows;
        if (!share_tokens)
          tensor_load(to, token_map, block * 128, row, full, evict_normal);
        else if ((box & 1) == static_cast<int>(rank))
          tensor_load_multicast(to, token_map, block * 128, row, full, 3, evict_normal);
      }
      bulk_load(shared.scales + ring.stage * C::scale_bytes, product.token_scales + static_cast<std::size_t>(block) * product.token_pitch + tile.token_row,
                static_cast<unsigned>(width * 4), full, evict_normal);
      ring.template advance<C::stages>();
    }
  }
}

// Token scales of the columns of this thread, four groups of eight tokens at a time: fetched ahead of their use, because a
// load from shared memory right before its use would cost more than the products.
struct TokenScales {
  float value[8];
  __device__ void load(std::uint32_t address, int first_group, int groups) {
    const std::uint32_t mine = address + (threadIdx.x % 4) * 8 + first_group * 32;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (i < groups) asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(value[2 * i]), "=f"(value[2 * i + 1]) : "r"(mine + i * 32));
  }
};

// acc += part, scaled by token and by the two row groups of a thread. `scales` holds the first four groups.
template <bool OneRowScale, int Half>
__device__ inline void add_scaled(float (&acc)[Half], const float (&part)[Half], TokenScales scales, std::uint32_t address, float low, float high) {
  constexpr int groups = Half / 4;
#pragma unroll
  for (int first = 0; first < groups; first += 4) {
    TokenScales next;
    if (first + 4 < groups) next.load(address, first + 4, groups - first - 4);
#pragma unroll
    for (int i = 0; i < 4 && first + i < groups; ++i) {
      const int at = 4 * (first + i);
      const float even = scales.value[2 * i] * low, odd = scales.value[2 * i + 1] * low;
      acc[at] += part[at] * even;
      acc[at + 1] += part[at + 1] * odd;
      acc[at + 2] += part[at + 2] * (OneRowScale ? even : scales.value[2 * i] * high);
      acc[at + 3] += part[at + 3] * (OneRowScale ? odd : scales.value[2 * i + 1] * high);
    }
    if (first + 4 < groups) scales = next;
  }
}

template <typename C, int N>
__device__ inline void multiply_fp8(float (&acc)[2][N / 2], std::uint32_t weights, std::uint32_t tokens, std::uint32_t scales, float low, float high) {
  constexpr int together = N <= 64 && C::Product::asynchronous ? 2 : 1;  // 64-row halves in flight
#pragma unroll
  for (int first = 0; first < 2; first += together) {
    float part[together][N / 2];
    C::Product::begin();
#pragma unroll
    for (int half = 0; half < together; ++half)
#pragma unroll
      for (int k = 0; k < 4; ++k) C::Product::from_shared(part[half], weights + (first + half) * 8192, tokens, k, k > 0);
    C::Product::commit();
    TokenScales ahead;
    ahead.load(scales, 0, N / 8);
    C::Product::wait();
#pragma unroll
    for (int half = 0; half < together; ++half) add_scaled<!C::swiglu>(acc[first + half], part[half], ahead, scales, low, high);
  }
}

template <typename C, int N>
__device__ inline void multiply_fp4(float (&acc)[2][N / 2], std::uint32_t weights, std::uint32_t tokens, std::uint32_t scales) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, group = threadIdx.x / 128;
  constexpr int together = N <= (C::Product::asynchronous ? 32 : 16) ? 4 : 1;  // products over 32 of K in flight, each with its own scales
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const unsigned slice = group * 8 + half * 4 + warp;
    std::uint32_t fragment[4][4];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      std::uint32_t w[4];
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                   : "r"(weights + (slice * 2 + pair) * 512 + lane * 16));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        fragment[pair * 2 + i / 2][i % 2 * 2] = e2m1_high_to_e4m3(w[i]);
        fragment[pair * 2 + i / 2][i % 2 * 2 + 1] = e2m1_low_to_e4m3(w[i]);
      }
    }
    std::uint32_t low, high;
    const std::uint32_t row_scales = weights + 16384 + (slice * 16 + lane / 4) * 4;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(low) : "r"(row_scales));
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(high) : "r"(row_scales + 32));
#pragma unroll
    for (int first = 0; first < 4; first += together) {
      float part[together][N / 2];
      C::Product::begin();
#pragma unroll
      for (int k = 0; k < together; ++k) C::Product::from_registers(part[k], fragment[first + k], tokens, first + k, false);
      C::Product::commit();
      TokenScales ahead;
      ahead.load(scales, 0, N / 8);
      C::Product::wait();
      if constexpr (together == 4) {
#pragma unroll
        for (int i = 0; i < N / 2; ++i) {
          const std::uint32_t word = i % 4 < 2 ? low : high;
          part[0][i] = part[0][i] * scale_byte(word, 0) + part[1][i] * scale_byte(word, 1) + part[2][i] * scale_byte(word, 2) + part[3][i] * scale_byte(word, 3);
        }
        add_scaled<true>(acc[half], part[0], ahead, scales, e2m1_as_e4m3_scale, e2m1_as_e4m3_scale);
      } else {
        add_scaled<false>(acc[half], part[0], ahead, scales, scale_byte(low, first) * e2m1_as_e4m3_scale, scale_byte(high, first) * e2m1_as_e4m3_scale);
      }
    }
  }
}

template <typename C>
__device__ inline void release_stage(const GroupedShared<C>& shared, RingPosition& ring) {
  const unsigned lane = threadIdx.x % 32;
  __syncwarp();
  if (lane < C::cluster) {
    if constexpr (C::cluster == 1) mbarrier_arrive(shared.empty + ring.stage * 8);
    else mbarrier_arrive_at(shared.empty + ring.stage * 8, lane);
  }
  ring.template advance<C::stages>();
}

// This lane's share of a tile's weight scales: of blocks lane and lane + 32.
struct WeightScales {
  float2 of[2] = {};
  __device__ void load(const GroupedProduct& product, const GroupedTile& tile) {
    const int blocks = product.depth / 128, lane = threadIdx.x % 32;
    const float2* all = reinterpret_cast<const float2*>(product.weight_scales) +
                        (static_cast<std::size_t>(tile.expert) * (product.weight_rows / tile_rows) + tile.weight_tile) * blocks;
    if (lane < blocks) of[0] = __ldg(all + lane);
    if (lane + 32 < blocks) of[1] = __ldg(all + lane + 32);
  }
  __device__ float first(int block) const { return __shfl_sync(0xffffffffu, block < 32 ? of[0].x : of[1].x, block % 32); }
  __device__ float second(int block) const { return __shfl_sync(0xffffffffu, block < 32 ? of[0].y : of[1].y, block % 32); }
};

// A tile of 65 to 128 tokens, fp8: each warpgroup takes all tokens times its 128 weight rows.
template <typename C>
__device__ void consume_wide(const GroupedProduct& product, const GroupedShared<C>& shared, const GroupedTile& tile, RingPosition& ring,
                             WeightScales& weight_scales, const GroupedTile& next) {
#if RACKCAST_HAVE_WGMMA
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, group = warpgroup();
  const int blocks = product.depth / 128;
  const std::uint32_t my_scales = static_cast<std::uint32_t>(warp * 16 + lane / 4) * 4;
  float acc[2][64];
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int i = 0; i < 64; ++i) acc[half][i] = 0;
  if (!C::swiglu && group == 1) weight_scales.of[0].x = weight_scales.of[0].y, weight_scales.of[1].x = weight_scales.of[1].y;
  for (int block = 0; block < blocks; ++block) {
    const std::uint32_t weights = shared.stages + ring.stage * C::stage_bytes, tokens = weights + C::weight_bytes;
    const std::uint32_t scales = shared.scales + ring.stage * C::scale_bytes + my_scales;
    const float first = weight_scales.first(block), second = C::swiglu ? weight_scales.second(block) : first;
    mbarrier_wait(shared.full + ring.stage * 8, ring.parity);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float part[64];
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < 4; ++k) wgmma_e4m3_64xNx32(part, swizzled_tile(tokens + half * 8192) + 2 * k, swizzled_tile(weights + group * 16384) + 2 * k, k > 0);
      wgmma_commit();
      float upper, lower;
      asm volatile("ld.shared.f32 %0, [%1];" : "=f"(upper) : "r"(scales + half * 256));
      asm volatile("ld.shared.f32 %0, [%1];" : "=f"(lower) : "r"(scales + half * 256 + 32));
      const float factor[2][2] = {{upper * first, lower * first}, {upper * second, lower * second}};
      wgmma_wait<0>();
      if (half == 1) release_stage<C>(shared, ring);
#pragma unroll
      for (int i = 0; i < 64; ++i) acc[half][i] += part[i] * factor[C::swiglu ? i / 4 % 2 : 0][i % 4 / 2];
    }
  }
  weight_scales.load(product, next);  // arrives while this tile is stored
  if constexpr (C::swiglu)
    store_swiglu_wide<C::max_tokens>(acc, product, tile, shared.epilogue);
  else
    store_bf16_wide(acc, product, tile, shared.epilogue);
#endif
}

template <typename C, int N>
__device__ void consume(const GroupedProduct& product, const GroupedShared<C>& shared, const GroupedTile& tile, RingPosition& ring,
                        WeightScales& weight_scales, const GroupedTile& next) {
  const int group = warpgroup();
  const int blocks = product.depth / 128;
  float acc[2][N / 2];
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int i = 0; i < N / 2; ++i) acc[half][i] = 0;
  for (int block = 0; block < blocks; ++block) {
    const std::uint32_t weights = shared.stages + ring.stage * C::stage_bytes, tokens = weights + C::weight_bytes;
    const std::uint32_t scales = shared.scales + ring.stage * C::scale_bytes;
    mbarrier_wait(shared.full + ring.stage * 8, ring.parity);
    if constexpr (C::fp4) {
      multiply_fp4<C, N>(acc, weights, tokens, scales);
    } else {
      const float first = weight_scales.first(block), second = weight_scales.second(block);
      const float low = C::swiglu || group == 0 ? first : second, high = C::swiglu || group == 1 ? second : first;
      multiply_fp8<C, N>(acc, weights + group * 16384, tokens, scales, low, high);
    }
    release_stage<C>(shared, ring);
  }
  if constexpr (!C::fp4) weight_scales.load(product, next);  // arrives while this tile is stored
  if constexpr (C::swiglu)
    store_swiglu<C::max_tokens, N>(acc, product, tile, shared.epilogue);
  else
    store_bf16<N>(acc, product, tile);
}

template <typename C>
__global__ void __launch_bounds__(C::threads, 1) grouped_product_kernel(const __grid_constant__ GroupedProduct product) {
#if RACKCAST_HAVE_WGMMA
  constexpr bool runs_here = true;
#else
  constexpr bool runs_here = !C::Product::asynchronous;
#endif
  if constexpr (runs_here) {
    extern __shared__ std::uint8_t raw[];
    const GroupedShared<C> shared(raw);
    const unsigned rank = C::cluster == 1 ? 0 : cluster_rank();
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
      for (int stage = 0; stage < C::stages; ++stage) {
        mbarrier_init(shared.full + stage * 8, 1);
        mbarrier_init(shared.empty + stage * 8, 8 * C::cluster);  // one arrival a consumer warp of the cluster
      }
      mbarrier_init_fence();
    }
    if (warp == 4) C::Schedule::fill(*shared.plan, product.offset, product.count, product.experts, product.weight_rows / tile_rows);
    __syncthreads();
    if constexpr (C::cluster > 1) cluster_sync();
    typename C::Schedule schedule(*shared.plan, product.experts, product.weight_rows / tile_rows, static_cast<int>(rank));
    if (warp >= 8) {
#if RACKCAST_HAVE_WGMMA
      // 40 + 2 * 232 = 3 * 168, what the launch allots; asking for more would wait for ever.
      if constexpr (C::Product::asynchronous) registers_down<40>();
#endif
      if (threadIdx.x == 256) produce<C>(product, shared, schedule, rank);
      __syncwarp();
    } else {
#if RACKCAST_HAVE_WGMMA
      if constexpr (C::Product::asynchronous) registers_up<232>();
#endif
      RingPosition ring;
      GroupedTile tile, next;
      WeightScales scales;
      bool more = schedule.next(tile);
      if (more && !C::fp4) scales.load(product, tile);
      while (more) {
        next = tile;
        more = schedule.next(next);
        switch (tokens_wide(tile.tokens)) {
          case 8: consume<C, 8>(product, shared, tile, ring, scales, next); break;
          case 16: consume<C, 16>(product, shared, tile, ring, scales, next); break;
          case 32: consume<C, 32>(product, shared, tile, ring, scales, next); break;
          case 64: consume<C, 64>(product, shared, tile, ring, scales, next); break;
          default:
            if constexpr (C::wide_tiles) consume_wide<C>(product, shared, tile, ring, scales, next);
            else if constexpr (C::max_tokens == 128) consume<C, 128>(product, shared, tile, ring, scales, next);
        }
        tile = next;
      }
    }
    if constexpr (C::cluster > 1) cluster_sync();  // nobody leaves while its pair may still write to it
  }
}

}  // namespace rackcast::kernels
