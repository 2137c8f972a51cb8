// Index logits with warp products, for every target. A CTA takes 128 keys (16 a warp) of one request and walks over the
// request's (token, head) columns in chunks of 256 that it puts into shared memory. The order of the 128 values in a
// product does not matter, so each thread reads 16 bytes in a row and uses them as four K slots, in queries and keys alike.
#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/index_keys.cuh"
#include "kernels/indexer_kernels.hpp"

namespace rackcast::kernels {
namespace {

constexpr int cta_keys = 128;
constexpr int chunk_columns = 256;

template <int heads, bool fp4>
__global__ void __launch_bounds__(256) indexer_kernel(const __grid_constant__ IndexerParams p) {
  __shared__ __align__(128) std::uint8_t query[chunk_columns * index_dims];
  __shared__ float weights[chunk_columns];
  const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, group = lane >> 2, pair = lane & 3;
  const int sequence = blockIdx.y;  // dense: request; sparse: token
  const int tokens = p.blocks ? 1 : p.query_tokens, request = p.blocks ? sequence / p.query_tokens : sequence;
  const std::size_t first_token = p.blocks ? static_cast<std::size_t>(sequence) : static_cast<std::size_t>(request) * p.query_tokens;

  uint4 keys[2][2];  // [row g, g + 8][64-byte half]
  float scale[2];
  int key[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    key[r] = blockIdx.x * cta_keys + warp * 16 + group + 8 * r;
    scale[r] = 0;
    keys[r][0] = keys[r][1] = make_uint4(0, 0, 0, 0);
    if (key[r] >= p.key_count) continue;
    int position = key[r];
    if (p.blocks) position = p.blocks[first_token * (p.key_count / index_block) + key[r] / index_block] * index_block + key[r] % index_block;
    const std::uint8_t* page = p.keys + static_cast<std::size_t>(p.pages[static_cast<std::size_t>(request) * p.pages_per_request + position / index_page]) * index_page_bytes_of(fp4);
    if constexpr (fp4) {
      const std::uint8_t* row = page + position % index_page * (index_dims / 2);
      const std::uint32_t scales = *reinterpret_cast<const std::uint32_t*>(page + index_page * (index_dims / 2) + position % index_page * 4);
      const int largest = largest_code(scales);
#pragma unroll
      for (int half = 0; half < 2; ++half) {  // values 64 half + 16 pair and on, of scale group 2 half + pair / 2
        const uint2 codes = *reinterpret_cast<const uint2*>(row + half * 32 + pair * 8);
        const MagnitudeTable table = magnitude_table(shift_of(scales, half * 2 + pair / 2, largest));
        const uint2 first = expand_e2m1(codes.x, table), second = expand_e2m1(codes.y, table);
        keys[r][half] = make_uint4(first.x, first.y, second.x, second.y);
      }
      scale[r] = key_scale(largest);
    } else {
      const std::uint8_t* row = page + position % index_page * index_dims;
      keys[r][0] = *reinterpret_cast<const uint4*>(row + pair * 16);
      keys[r][1] = *reinterpret_cast<const uint4*>(row + 64 + pair * 16);
      scale[r] = *reinterpret_cast<const float*>(page + index_page * index_dims + position % index_page * 4);
    }
  }

  const int columns = tokens * heads;
  for (int start = 0; start < columns; start += chunk_columns) {
    __syncthreads();
    for (int c = thread; c < chunk_columns * 8; c += 256) {
      const int column = c >> 3, chunk = c & 7;
      uint4 value = make_uint4(0, 0, 0, 0);
      if (start + column < columns) value = *reinterpret_cast<const uint4*>(p.q + (first_token * heads + start + column) * index_dims + chunk * 16);
      *reinterpret_cast<uint4*>(query + column * 128 + ((chunk ^ ((column & 1) << 2)) << 4)) = value;
    }
    weights[thread] = start + thread < columns ? p.weights[first_token * heads + start + thread] : 0.f;
    __syncthreads();
    for (int t = 0; t < chunk_columns / heads && start + t * heads < columns; ++t) {
      float sum[2] = {0, 0};
#pragma unroll
      for (int n = 0; n < heads / 8; ++n) {
        const int column = t * heads + n * 8 + group;
        float dots[4] = {0, 0, 0, 0};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const uint4 q = *reinterpret_cast<const uint4*>(query + column * 128 + (((half * 4 + pair) ^ ((column & 1) << 2)) << 4));
          const std::uint32_t a0[4] = {keys[0][half].x, keys[1][half].x, keys[0][half].y, keys[1][half].y};
          const std::uint32_t a1[4] = {keys[0][half].z, keys[1][half].z, keys[0][half].w, keys[1][half].w};
          mma_e4m3_16x8x32(dots, a0, q.x, q.y);
          mma_e4m3_16x8x32(dots, a1, q.z, q.w);
        }
        const float2 w = *reinterpret_cast<const float2*>(weights + t * heads + n * 8 + 2 * pair);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i >> 1] = fmaf(fmaxf(dots[i], 0.f), (i & 1) ? w.y : w.x, sum[i >> 1]);
      }
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
        sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
        if (pair == 0 && key[r] < p.key_count) p.logits[(first_token + start / heads + t) * p.key_count + key[r]] = sum[r] * scale[r];
      }
    }
  }
}

}  // namespace

void indexer_portable(const IndexerParams& p, Stream stream) {
  const dim3 grid(static_cast<unsigned>((p.key_count + cta_keys - 1) / cta_keys), static_cast<unsigned>(p.blocks ? p.requests * p.query_tokens : p.requests));
  if (p.heads == 64) (p.fp4 ? indexer_kernel<64, true> : indexer_kernel<64, false>)<<<grid, 256, 0, stream>>>(p);
  else (p.fp4 ? indexer_kernel<32, true> : indexer_kernel<32, false>)<<<grid, 256, 0, stream>>>(p);
  RACKCAST_LAUNCH_CHECK();
}

}  // namespace rackcast::kernels
