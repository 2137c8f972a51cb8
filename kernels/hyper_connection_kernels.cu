// Hyper-connections before and after a sublayer. Floors: one node of a graph, 1.3-2 us, until the bytes count: at 4.3 TB/s and
// H = 5120, 14 ns a token for mhc_pre, 21 ns for mhc_post; mhc_pre also reads 2 MB of weights.
#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/small_device.hpp"

namespace rackcast::kernels {
namespace {

// Partial logits: blockIdx.x takes one of 32 slices of the 4 H inputs, blockIdx.y sixteen tokens. A warp takes three outputs
// (24 in 8 warps), its lanes the slice's inputs.
constexpr int mhc_tokens = 16;
__global__ void __launch_bounds__(256) mhc_logits_kernel(int tokens, int inputs, const __nv_bfloat16* x, const float* weights, float* scratch) {
  extern __shared__ float slice[];  // [mhc_tokens][width]
  const int width = inputs / mhc_splits, start = static_cast<int>(blockIdx.x) * width, first = static_cast<int>(blockIdx.y) * mhc_tokens;
  const int mine = min(mhc_tokens, tokens - first), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = threadIdx.x; i < mhc_tokens * width / 2; i += 256) {
    const int token = i / (width / 2), column = i % (width / 2) * 2;
    const std::uint32_t pair = token < mine ? *reinterpret_cast<const std::uint32_t*>(x + static_cast<std::size_t>(first + token) * inputs + start + column) : 0u;
    slice[token * width + column] = low_bf16(pair);
    slice[token * width + column + 1] = high_bf16(pair);
  }
  __syncthreads();
  float sum[3][mhc_tokens] = {}, square[2] = {};
  for (int column = lane; column < width; column += 32) {
    float w[3];
#pragma unroll
    for (int o = 0; o < 3; ++o) w[o] = __ldg(weights + static_cast<std::size_t>(warp * 3 + o) * inputs + start + column);
#pragma unroll
    for (int token = 0; token < mhc_tokens; ++token) {
      const float value = slice[token * width + column];
#pragma unroll
      for (int o = 0; o < 3; ++o) sum[o][token] += w[o] * value;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // warp w also sums the squares of tokens w and w + 8
      const float own = slice[(warp + 8 * half) * width + column];
      square[half] += own * own;
    }
  }
  float* out = scratch + (static_cast<std::size_t>(blockIdx.x) * tokens + first) * 25;
#pragma unroll
  for (int token = 0; token < mhc_tokens; ++token)
#pragma unroll
    for (int o = 0; o < 3; ++o) {
      const float total = warp_sum(sum[o][token]);
      if (lane == 0 && token < mine) out[token * 25 + warp * 3 + o] = total;
    }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float total = warp_sum(square[half]);
    if (lane == 0 && warp + 8 * half < mine) out[(warp + 8 * half) * 25 + 24] = total;
  }
}

// A block a token: adds the slices, does the Sinkhorn rounds (16 lanes, one an entry), mixes the streams.
__global__ void __launch_bounds__(256) mhc_mix_kernel(int tokens, int hidden, const uint4* x, const float* scratch, float* mixing, uint4* y) {
  __shared__ float logits[25], pre[4];
  const int token = static_cast<int>(blockIdx.x), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int o = warp; o < 25; o += 8) {
    const float total = warp_sum(scratch[(static_cast<std::size_t>(lane) * tokens + token) * 25 + o]);
    if (lane == 0) logits[o] = total;
  }
  __syncthreads();
  if (warp == 0) {
    const float inverse = rsqrtf(logits[24] / static_cast<float>(4 * hidden));
    if (lane < 8) {
      const float gate = 1.0f / (1.0f + __expf(-logits[lane] * inverse));
      if (lane < 4) pre[lane] = gate;
      mixing[token * 24 + lane] = lane < 4 ? gate : 2.0f * gate;
    }
    float entry = lane < 16 ? __expf(logits[8 + lane] * inverse) : 0.0f;
    for (int round = 0; round < 20; ++round) {
      float sum = entry;
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      entry = __fdividef(entry, sum);
      sum = entry;
      sum += __shfl_xor_sync(0xffffffffu, sum, 4);
      sum += __shfl_xor_sync(0xffffffffu, sum, 8);
      entry = __fdividef(entry, sum);
    }
    if (lane < 16) mixing[token * 24 + 8 + lane] = entry;
  }
  __syncthreads();
  const float p[4] = {pre[0], pre[1], pre[2], pre[3]};
  const int chunks = hidden / 8;
  for (int chunk = threadIdx.x; chunk < chunks; chunk += 256) {
    float sum[8] = {};
#pragma unroll
    for (int stream = 0; stream < 4; ++stream) {
      const uint4 raw = x[(static_cast<std::size_t>(token) * 4 + stream) * chunks + chunk];
      const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sum[2 * i] += p[stream] * low_bf16(words[i]);
        sum[2 * i + 1] += p[stream] * high_bf16(words[i]);
      }
    }
    y[static_cast<std::size_t>(token) * chunks + chunk] = make_uint4(pack_bf16(sum[0], sum[1]), pack_bf16(sum[2], sum[3]), pack_bf16(sum[4], sum[5]), pack_bf16(sum[6], sum[7]));
  }
}

__global__ void __launch_bounds__(256) mhc_post_kernel(int tokens, int hidden, const uint4* x, const uint4* o, const float* mixing, uint4* out) {
  const int chunks = hidden / 8;
  const std::size_t at = blockIdx.x * std::size_t{256} + threadIdx.x;
  if (at >= static_cast<std::size_t>(tokens) * chunks) return;
  const std::size_t token = at / chunks, chunk = at % chunks;
  float value[4][8], added[8];
  const auto unpack = [](const uint4& raw, float (&to)[8]) {
    const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) to[2 * i] = low_bf16(words[i]), to[2 * i + 1] = high_bf16(words[i]);
  };
#pragma unroll
  for (int stream = 0; stream < 4; ++stream) unpack(x[(token * 4 + stream) * chunks + chunk], value[stream]);
  unpack(o[at], added);
  const float* mix = mixing + token * 24;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float sum[8];
    const float post = __ldg(mix + 4 + i);
#pragma unroll
    for (int c = 0; c < 8; ++c) sum[c] = post * added[c];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float comb = __ldg(mix + 8 + 4 * i + j);
#pragma unroll
      for (int c = 0; c < 8; ++c) sum[c] += comb * value[j][c];
    }
    out[(token * 4 + i) * chunks + chunk] = make_uint4(pack_bf16(sum[0], sum[1]), pack_bf16(sum[2], sum[3]), pack_bf16(sum[4], sum[5]), pack_bf16(sum[6], sum[7]));
  }
}

}  // namespace

void launch_mhc_pre(int tokens, int hidden, const void* x, const float* weights, float* scratch, float* mixing, void* y, Stream stream) {
  const int width = 4 * hidden / mhc_splits;
  mhc_logits_kernel<<<dim3(mhc_splits, blocks_for(static_cast<std::size_t>(tokens), mhc_tokens)), 256, static_cast<std::size_t>(mhc_tokens * width) * 4, stream>>>(
      tokens, 4 * hidden, static_cast<const __nv_bfloat16*>(x), weights, scratch);
  RACKCAST_LAUNCH_CHECK();
  mhc_mix_kernel<<<static_cast<unsigned>(tokens), 256, 0, stream>>>(tokens, hidden, static_cast<const uint4*>(x), scratch, mixing, static_cast<uint4*>(y));
  RACKCAST_LAUNCH_CHECK();
}
void launch_mhc_post(int tokens, int hidden, const void* x, const void* o, const float* mixing, void* out, Stream stream) {
  mhc_post_kernel<<<blocks_for(static_cast<std::size_t>(tokens) * static_cast<std::size_t>(hidden / 8), 256), 256, 0, stream>>>(tokens, hidden, static_cast<const uint4*>(x), static_cast<const uint4*>(o), mixing, static_cast<uint4*>(out));
  RACKCAST_LAUNCH_CHECK();
}

}  // namespace rackcast::kernels
