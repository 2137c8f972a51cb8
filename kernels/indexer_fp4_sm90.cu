// Index logits of fp4 keys on Hopper (frame in index_line_sm90.cuh), up to 128 columns. Keys stay fp4 up to the registers: a
// warpgroup copies their bytes into the ring, and the two that multiply expand them straight into the product's A fragments.
// The order of the 128 values does not matter to a dot product, so a thread takes 32 in a row (one scale's group) as its
// share of the four steps, and queries are laid out in that order when they come into shared memory.
#include "kernels/device.cuh"
#include "kernels/hopper_wgmma.cuh"
#include "kernels/index_keys.cuh"
#include "kernels/index_line_sm90.cuh"

namespace rackcast::kernels {
namespace {

constexpr int tile_keys = index_tile_keys;
constexpr int code_bytes = index_dims / 2;

struct Fp4Keys {
  static constexpr int stages = 20;
  static constexpr int stage_bytes = tile_keys * (code_bytes + 4);  // codes, then scales
  template <int columns>
  __device__ static void copy(const IndexerParams& p, const IndexLine& line, std::uint32_t base, std::int64_t begin, std::int64_t end);
  template <int columns, int heads>
  __device__ static void weigh(const IndexerParams& p, const IndexLine& line, std::uint32_t base, std::int64_t begin, std::int64_t end, int warpgroup);
};

#if RACKCAST_HAVE_WGMMA

// A CTA's stretch of the line within one group: tiles first..last-1, the first being the CTA's tile number `number`.
struct Stretch {
  int request, group_of_request, first, last;
  std::int64_t number;
  __device__ Stretch(const IndexLine& line, std::int64_t at, std::int64_t begin, std::int64_t end) {
    const int group = static_cast<int>(at / line.tiles_per_group);
    request = group / line.groups_per_request;
    group_of_request = group % line.groups_per_request;
    first = static_cast<int>(at % line.tiles_per_group);
    const std::int64_t left = end - at;
    last = left < line.tiles_per_group - first ? first + static_cast<int>(left) : line.tiles_per_group;
    number = at - begin;
  }
  __device__ int tiles() const { return last - first; }
};

// Where the CTA's n-th tile lies in the ring, and the parity of its round.
struct Slot {
  int stage;
  std::uint32_t parity;
  __device__ explicit Slot(std::int64_t number) {
    const auto n = static_cast<std::uint32_t>(number);
    stage = static_cast<int>(n % Fp4Keys::stages);
    parity = n / Fp4Keys::stages & 1;
  }
};

template <int columns>
__device__ void Fp4Keys::copy(const IndexerParams& p, const IndexLine& line, std::uint32_t base, std::int64_t begin, std::int64_t end) {
  using Shared = IndexShared<Fp4Keys, columns>;
  const int thread = threadIdx.x - 256, row = thread >> 1, half = thread & 1;  // two threads a key, 32 B each
  for (std::int64_t at = begin; at < end;) {
    const Stretch stretch(line, at, begin, end);
    for (int tile = stretch.first; tile < stretch.last; ++tile) {
      const int key = tile * tile_keys + row;
      const bool real = key < p.key_count;
      const std::uint8_t* codes = p.keys;
      const std::uint8_t* scales = p.keys;
      if (real) {
        int position = key;
        if (p.blocks) {
          const std::size_t token = static_cast<std::size_t>(stretch.request) * p.query_tokens + stretch.group_of_request;
          position = __ldg(p.blocks + token * (p.key_count / index_block) + key / index_block) * index_block + key % index_block;
        }
        const std::size_t page = static_cast<std::size_t>(__ldg(p.pages + static_cast<std::size_t>(stretch.request) * p.pages_per_request + position / index_page));
        const std::uint8_t* start = p.keys + page * index_page_bytes_of(true);
        codes = start + position % index_page * code_bytes + half * 32;
        scales = start + index_page * code_bytes + position % index_page * 4;
      }
      const Slot slot(stretch.number + tile - stretch.first);
      const std::uint32_t full = base + Shared::barriers + slot.stage * 16, empty = full + 8;
      mbarrier_wait(empty, slot.parity ^ 1);
      const std::uint32_t target = base + Shared::keys + slot.stage * stage_bytes;
      cp_async_16(target + row * code_bytes + half * 32, codes, real);
      cp_async_16(target + row * code_bytes + half * 32 + 16, real ? codes + 16 : codes, real);
      if (half == 0) {
        const int bytes = real ? 4 : 0;
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(target + tile_keys * code_bytes + row * 4), "l"(scales), "r"(bytes));
      }
      mbarrier_arrive_after_copies(full);
    }
    at += stretch.tiles();
  }
}

// Value p * 32 + step * 8 + half * 4 + j of a query goes to byte step * 32 + half * 16 + p * 4 + j of its row.
template <int columns>
__device__ inline void load_queries(const IndexerParams& p, std::uint32_t query, std::size_t first_column, int real_columns) {
  for (int c = threadIdx.x; c < columns * 8; c += 256) {
    const int column = c >> 3, chunk = c & 7;
    uint4 words = make_uint4(0, 0, 0, 0);
    if (column < real_columns) words = __ldg(reinterpret_cast<const uint4*>(p.q + (first_column + column) * index_dims) + chunk);
    const std::uint32_t word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const int to = (chunk & 1) * 4 + m;  // step * 2 + half
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(query + column * 128 + ((to ^ (column & 7)) << 4) + (chunk >> 1) * 4), "r"(word[m]) : "memory");
    }
  }
}

// This thread's 32 values of one key as e4m3 (two registers a step), and the key's scale.
struct KeyShare {
  uint2 step[4];
  float scale;
};
__device__ inline KeyShare expand_share(std::uint32_t codes_at, std::uint32_t scales_at, int pair) {
  std::uint32_t word[4], scales;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3]) : "r"(codes_at + pair * 16) : "memory");
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(scales) : "r"(scales_at) : "memory");
  const int largest = largest_code(scales);
  const MagnitudeTable table = magnitude_table(shift_of(scales, pair, largest));
  KeyShare share;
#pragma unroll
  for (int i = 0; i < 4; ++i) share.step[i] = expand_e2m1(word[i], table);
  share.scale = key_scale(largest);
  return share;
}

// A warpgroup takes `together` tiles in a row: while the products of one run, it expands the next, and their sums over the
// heads, long chains of additions each, overlap.
template <int columns, int heads>
__device__ void Fp4Keys::weigh(const IndexerParams& p, const IndexLine& line, std::uint32_t base, std::int64_t begin, std::int64_t end, int warpgroup) {
  using Shared = IndexShared<Fp4Keys, columns>;
  constexpr int tokens = columns / heads, together = columns == 32 ? 4 : 2;
  const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3, row0 = warp * 16 + (lane >> 2), pair = lane & 3;
  const std::uint64_t queries = swizzled_tile(base + Shared::query);
  for (std::int64_t at = begin; at < end;) {
    const Stretch stretch(line, at, begin, end);
    const int token0 = stretch.group_of_request * line.tokens_per_group;
    const std::size_t out_row = static_cast<std::size_t>(stretch.request) * p.query_tokens + token0;
    const int group_tokens = min(line.tokens_per_group, p.query_tokens - token0);
    named_barrier(1, 256);  // both warpgroups are done with the queries of before
    load_queries<columns>(p, base + Shared::query, out_row * heads, group_tokens * heads);
    float weight[columns / 4];  // of this thread's columns 8j + 2 pair, + 1
#pragma unroll
    for (int j = 0; j < columns / 8; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int column = 8 * j + 2 * pair + i;
        weight[2 * j + i] = column < group_tokens * heads ? __ldg(p.weights + out_row * heads + column) : 0.f;
      }
    async_proxy_fence();
    named_barrier(1, 256);
    for (int tile = stretch.first + warpgroup * together; tile < stretch.last; tile += 2 * together) {
      float dots[together][columns / 2];
      std::uint32_t a[together][4][4];
      float scale[together][2];
#pragma unroll
      for (int u = 0; u < together; ++u) {
        if (tile + u >= stretch.last) break;
        const Slot slot(stretch.number + tile + u - stretch.first);
        const std::uint32_t full = base + Shared::barriers + slot.stage * 16, empty = full + 8, codes = base + Shared::keys + slot.stage * stage_bytes;
        mbarrier_wait(full, slot.parity);
        const KeyShare low = expand_share(codes + row0 * code_bytes, codes + tile_keys * code_bytes + row0 * 4, pair);
        const KeyShare high = expand_share(codes + (row0 + 8) * code_bytes, codes + tile_keys * code_bytes + (row0 + 8) * 4, pair);
        __syncwarp();
        if (lane == 0) mbarrier_arrive(empty);
        scale[u][0] = low.scale;
        scale[u][1] = high.scale;
#pragma unroll
        for (int step = 0; step < 4; ++step) {
          a[u][step][0] = low.step[step].x;
          a[u][step][1] = high.step[step].x;
          a[u][step][2] = low.step[step].y;
          a[u][step][3] = high.step[step].y;
        }
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < 4; ++step) wgmma_e4m3_64xNx32(dots[u], a[u][step], queries + static_cast<std::uint64_t>(step * 2), step != 0);
        wgmma_commit();
      }
      wgmma_wait<0>();
#pragma unroll
      for (int u = 0; u < together; ++u) accumulators_fence(dots[u]);
      float sum[together][tokens][2][2];  // two chains each
#pragma unroll
      for (int u = 0; u < together; ++u)
#pragma unroll
        for (int t = 0; t < tokens; ++t) {
          sum[u][t][0][0] = sum[u][t][0][1] = sum[u][t][1][0] = sum[u][t][1][1] = 0;
#pragma unroll
          for (int n = 0; n < heads / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              const int j = t * (heads / 8) + n;
              float& chain = sum[u][t][i >> 1][i & 1];
              chain = fmaf(fmaxf(dots[u][4 * j + i], 0.f), weight[2 * j + (i & 1)], chain);
            }
        }
#pragma unroll
      for (int u = 0; u < together; ++u)
#pragma unroll
        for (int t = 0; t < tokens; ++t)
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            float total = sum[u][t][r][0] + sum[u][t][r][1];
            total += __shfl_xor_sync(0xffffffffu, total, 1);
            total += __shfl_xor_sync(0xffffffffu, total, 2);
            const int key = (tile + u) * tile_keys + row0 + 8 * r;
            if (tile + u < stretch.last && pair == (t & 3) && t < group_tokens && key < p.key_count) p.logits[(out_row + t) * p.key_count + key] = total * scale[u][r];
          }
    }
    at += stretch.tiles();
  }
}

#endif

}  // namespace

void indexer_fp4_sm90(const IndexerParams& params, int sm_count, Stream stream) {
  const int together = params.blocks ? 1 : params.query_tokens;
  if (params.heads == 64) {
    if (together > 1) launch_index<Fp4Keys, 128, 64>(params, sm_count, stream);
    else launch_index<Fp4Keys, 64, 64>(params, sm_count, stream);
  } else {
    if (together > 2) launch_index<Fp4Keys, 128, 32>(params, sm_count, stream);
    else if (together == 2) launch_index<Fp4Keys, 64, 32>(params, sm_count, stream);
    else launch_index<Fp4Keys, 32, 32>(params, sm_count, stream);
  }
}

}  // namespace rackcast::kernels
