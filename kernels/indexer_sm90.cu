// Index logits of fp8 keys on Hopper (frame in index_line_sm90.cuh), up to 256 columns. Warpgroups 0 and 1 take alternate tiles:
// while one weighs and sums its accumulators over the heads, the other's products run.
#include "kernels/device.cuh"
#include "kernels/hopper_wgmma.cuh"
#include "kernels/index_line_sm90.cuh"

namespace rackcast::kernels {
namespace {

constexpr int tile_keys = index_tile_keys;
constexpr int key_bytes = tile_keys * index_dims;

struct Fp8Keys {
  static constexpr int stages = 12;
  static constexpr int stage_bytes = key_bytes + tile_keys * 4;  // all keys first, then the scales of all stages
  template <int columns>
  __device__ static void copy(const IndexerParams& p, const IndexLine& line, std::uint32_t base, std::int64_t first, std::int64_t last);
  template <int columns, int heads>
  __device__ static void weigh(const IndexerParams& p, const IndexLine& line, std::uint32_t base, std::int64_t first, std::int64_t last, int warpgroup);
};

#if RACKCAST_HAVE_WGMMA

struct Place {  // where a CTA is on the line
  int request, group_of_request, tile;
  __device__ Place(const IndexLine& line, std::int64_t at) {
    const int group = static_cast<int>(at / line.tiles_per_group);
    tile = static_cast<int>(at % line.tiles_per_group);
    request = group / line.groups_per_request;
    group_of_request = group % line.groups_per_request;
  }
  __device__ void next(const IndexLine& line) {
    if (++tile < line.tiles_per_group) return;
    tile = 0;
    if (++group_of_request < line.groups_per_request) return;
    group_of_request = 0;
    ++request;
  }
};

template <int columns>
__device__ void Fp8Keys::copy(const IndexerParams& p, const IndexLine& line, std::uint32_t base, std::int64_t first, std::int64_t last) {
  using Shared = IndexShared<Fp8Keys, columns>;
  constexpr int scales = Shared::keys + stages * key_bytes;
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
    const std::uint32_t target = base + Shared::keys + stage * key_bytes + row * 128;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int chunk = half * 4 + i;
      cp_async_16(target + ((chunk ^ (row & 7)) << 4), page ? page + within * index_dims + chunk * 16 : p.keys, page != nullptr);
    }
    if (half == 0) {
      const std::uint32_t scale = base + scales + (stage * tile_keys + row) * 4;
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
__device__ void Fp8Keys::weigh(const IndexerParams& p, const IndexLine& line, std::uint32_t base, std::int64_t first, std::int64_t last, int warpgroup) {
  using Shared = IndexShared<Fp8Keys, columns>;
  constexpr int scales = Shared::keys + stages * key_bytes;
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
        wgmma_e4m3_64xNx32(dots, tile_plus(keys, stage * key_bytes + step * 32), tile_plus(queries, step * 32), step != 0);
      wgmma_commit();
      float scale[2];
#pragma unroll
      for (int r = 0; r < 2; ++r)
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(scale[r]) : "r"(base + scales + (stage * tile_keys + row0 + 8 * r) * 4) : "memory");
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

}  // namespace

void indexer_sm90(const IndexerParams& params, int sm_count, Stream stream) {
  const int together = params.blocks ? 1 : params.query_tokens;
  if (params.heads == 64) {
    if (together > 2) launch_index<Fp8Keys, 256, 64>(params, sm_count, stream);
    else if (together == 2) launch_index<Fp8Keys, 128, 64>(params, sm_count, stream);
    else launch_index<Fp8Keys, 64, 64>(params, sm_count, stream);
  } else {
    if (together > 4) launch_index<Fp8Keys, 256, 32>(params, sm_count, stream);
    else if (together > 2) launch_index<Fp8Keys, 128, 32>(params, sm_count, stream);
    else if (together == 2) launch_index<Fp8Keys, 64, 32>(params, sm_count, stream);
    else launch_index<Fp8Keys, 32, 32>(params, sm_count, stream);
  }
}

}  // namespace rackcast::kernels
