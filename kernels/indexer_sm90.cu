// Index logits on Hopper. Keys are the 64 rows of a product, (token, head) its columns (up to 256), K = 128 in four steps.
// All tiles of 64 keys of all column groups form one line that the CTAs share evenly; a CTA keeps a group's queries in
// shared memory while keys stream through a ring. Warpgroup 2 copies keys, warpgroups 0 and 1 take alternate tiles: while
// one weighs and sums its accumulators over the heads, the other's products run.
#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/indexer_kernels.hpp"
#include "kernels/hopper.cuh"
#include "kernels/hopper_wgmma.cuh"

namespace rackcast::kernels {
namespace {

constexpr int tile_keys = 64;
constexpr int stage_bytes = tile_keys * index_dims;
constexpr int stages = 12;

template <int columns>
struct IndexShared {
  static constexpr int query = 0;
  static constexpr int keys = columns * index_dims < 8192 ? 8192 : columns * index_dims;
  static constexpr int scales = keys + stages * stage_bytes;   // float [stages][64]
  static constexpr int barriers = scales + stages * tile_keys * 4;
  static constexpr int bytes = barriers + stages * 16 + 1024;
};

struct Line {  // the line of tiles: group-major
  int tokens_per_group, groups_per_request, tiles_per_group;
};

#if RACKCAST_HAVE_WGMMA

struct Place {  // where a CTA is on the line
  int request, group_of_request, tile;
  __device__ Place(const Line& line, std::int64_t at) {
    const int group = static_cast<int>(at / line.tiles_per_group);
    tile = static_cast<int>(at % line.tiles_per_group);
    request = group / line.groups_per_request;
    group_of_request = group % line.groups_per_request;
  }
  __device__ void next(const Line& line) {
    if (++tile < line.tiles_per_group) return;
    tile = 0;
    if (++group_of_request < line.groups_per_request) return;
    group_of_request = 0;
    ++request;
  }
};

template <int columns>
__device__ inline void copy_keys(const IndexerParams& p, const Line& line, std::uint32_t base, std::int64_t first, std::int64_t last) {
  using Shared = IndexShared<columns>;
  const int thread = threadIdx.x - 256;
  const int row = thread >> 1, half = thread & 1;  // two threads a key, 64 B each
  int stage = 0;
  std::uint32_t parity = 1;
  Place place(line, first);
  for (std::int64_t at = first; at < last; ++at, place.next(line)) {
    const int tile = place.tile, request = place.request;
    const int key = tile * tile_keys + row;
    const std::uint8_t* page = nullptr;
    int within = 0;
    if (key < p.key_count) {
      int position = key;
      if (p.blocks) {
        const std::size_t token = static_cast<std::size_t>(request) * p.query_tokens + place.group_of_request;
        position = __ldg(p.blocks + token * (p.key_count / index_block) + key / index_block) * index_block + key % index_block;
      }
      page = p.keys + static_cast<std::size_t>(__ldg(p.pages + static_cast<std::size_t>(request) * p.pages_per_request + position / index_page)) * index_page_bytes;
      within = position % index_page;
    }
    const std::uint32_t full = base + Shared::barriers + stage * 16, empty = full + 8;
    mbarrier_wait(empty, parity);
    const std::uint32_t target = base + Shared::keys + stage * stage_bytes + row * 128;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int chunk = half * 4 + i;
      cp_async_16(target + ((chunk ^ (row & 7)) << 4), page ? page + within * index_dims + chunk * 16 : p.keys, page != nullptr);
    }
    if (half == 0) {
      const std::uint32_t scale = base + Shared::scales + (stage * tile_keys + row) * 4;
      const int bytes = page ? 4 : 0;
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                   ::"r"(scale), "l"(page ? page + index_page * index_dims + within * 4 : p.keys), "r"(bytes));
    }
    mbarrier_arrive_after_copies(full);
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
}

template <int columns, int heads>
__device__ inline void weigh_tiles(const IndexerParams& p, const Line& line, std::uint32_t base, std::int64_t first, std::int64_t last, int warpgroup) {
  using Shared = IndexShared<columns>;
  constexpr int tokens = columns / heads;
  const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3, row0 = warp * 16 + (lane >> 2), pair = lane & 3;
  const std::uint64_t keys = swizzled_tile(base + Shared::keys), queries = swizzled_tile(base + Shared::query);
  int stage = 0;
  bool held = false;
  std::uint32_t parity = 0;
  float weight[columns / 4];  // of this thread's columns 8j + 2 pair, + 1
  Place place(line, first);
  for (std::int64_t at = first; at < last; ++at, place.next(line)) {
    const int tile = place.tile, token0 = place.group_of_request * line.tokens_per_group;
    const std::size_t out_row = static_cast<std::size_t>(place.request) * p.query_tokens + token0;
    const int group_tokens = min(line.tokens_per_group, p.query_tokens - token0);
    if (!held || tile == 0) {
      held = true;
      named_barrier(1, 256);  // both warpgroups are done with the queries of before
      for (int c = threadIdx.x; c < columns * 8; c += 256) {
        const int column = c >> 3, chunk = c & 7;
        const bool real = column < group_tokens * heads;
        cp_async_16(base + Shared::query + column * 128 + ((chunk ^ (column & 7)) << 4), real ? p.q + (out_row * heads + column) * index_dims + chunk * 16 : p.q, real);
      }
      cp_async_commit();
#pragma unroll
      for (int j = 0; j < columns / 8; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int column = 8 * j + 2 * pair + i;
          weight[2 * j + i] = column < group_tokens * heads ? __ldg(p.weights + out_row * heads + column) : 0.f;
        }
      cp_async_wait<0>();
      async_proxy_fence();
      named_barrier(1, 256);
    }
    const std::int64_t turn = at - first;
    if ((turn & 1) == warpgroup) {
      const std::uint32_t full = base + Shared::barriers + stage * 16, empty = full + 8;
      mbarrier_wait(full, parity);
      async_proxy_fence();
      float dots[columns / 2];
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < 4; ++step)
        wgmma_e4m3_64xNx32(dots, tile_plus(keys, stage * stage_bytes + step * 32), tile_plus(queries, step * 32), step != 0);
      wgmma_commit();
      float scale[2];
#pragma unroll
      for (int r = 0; r < 2; ++r)
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(scale[r]) : "r"(base + Shared::scales + (stage * tile_keys + row0 + 8 * r) * 4) : "memory");
      wgmma_wait<0>();
      accumulators_fence(dots);
      if (lane == 0) mbarrier_arrive(empty);
#pragma unroll
      for (int t = 0; t < tokens; ++t) {
        float sum[2] = {0, 0};
#pragma unroll
        for (int n = 0; n < heads / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int j = t * (heads / 8) + n;
            sum[i >> 1] = fmaf(fmaxf(dots[4 * j + i], 0.f), weight[2 * j + (i & 1)], sum[i >> 1]);
          }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
          sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
          const int key = tile * tile_keys + row0 + 8 * r;
          if (pair == (t & 3) && t < group_tokens && key < p.key_count) p.logits[(out_row + t) * p.key_count + key] = sum[r] * scale[r];
        }
      }
    }
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
}

#endif

template <int columns, int heads>
__global__ void __launch_bounds__(384, 1) indexer_kernel(const __grid_constant__ IndexerParams p, const __grid_constant__ Line line) {
#if RACKCAST_HAVE_WGMMA
  using Shared = IndexShared<columns>;
  extern __shared__ std::uint8_t shared_memory[];
  const std::uint32_t base = (shared_address(shared_memory) + 1023u) & ~1023u;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      mbarrier_init(base + Shared::barriers + stage * 16, 128);
      mbarrier_init(base + Shared::barriers + stage * 16 + 8, 4);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  const std::int64_t total = static_cast<std::int64_t>(line.tiles_per_group) * line.groups_per_request * p.requests;
  const std::int64_t first = total * blockIdx.x / gridDim.x, last = total * (blockIdx.x + 1) / gridDim.x;
  const int warpgroup = threadIdx.x >> 7;
  if (warpgroup == 2) {
    registers_down<40>();
    copy_keys<columns>(p, line, base, first, last);
  } else {
    registers_up<232>();
    weigh_tiles<columns, heads>(p, line, base, first, last, warpgroup);
  }
#else
  __trap();
#endif
}

template <int columns, int heads>
void launch(const IndexerParams& params, int sm_count, Stream stream) {
  constexpr int bytes = IndexShared<columns>::bytes;
  static const cudaError_t prepared = cudaFuncSetAttribute(indexer_kernel<columns, heads>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  RACKCAST_CUDA_CHECK(prepared);
  const int tokens = params.blocks ? 1 : columns / heads;
  const Line line{tokens, (params.query_tokens + tokens - 1) / tokens, (params.key_count + tile_keys - 1) / tile_keys};
  const std::int64_t total = static_cast<std::int64_t>(line.tiles_per_group) * line.groups_per_request * params.requests;
  indexer_kernel<columns, heads><<<static_cast<unsigned>(total < sm_count ? total : sm_count), 384, bytes, stream>>>(params, line);
  RACKCAST_LAUNCH_CHECK();
}

}  // namespace

void indexer_sm90(const IndexerParams& params, int sm_count, Stream stream) {
  const int together = params.blocks ? 1 : params.query_tokens;
  if (params.heads == 64) {
    if (together > 2) launch<256, 64>(params, sm_count, stream);
    else if (together == 2) launch<128, 64>(params, sm_count, stream);
    else launch<64, 64>(params, sm_count, stream);
  } else {
    if (together > 4) launch<256, 32>(params, sm_count, stream);
    else if (together > 2) launch<128, 32>(params, sm_count, stream);
    else if (together == 2) launch<64, 32>(params, sm_count, stream);
    else launch<32, 32>(params, sm_count, stream);
  }
}

}  // namespace rackcast::kernels
