// Floors: one node of a graph, 1.3-2 us, until the bytes count: at 4.3 TB/s and H = 5120, 14 ns a token for mhc_pre, 21 ns
// for mhc_post; mhc_pre also reads 2 MB of weights. Verification of a row reads 259 kB: 60 ns a row.
#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/small_device.hpp"

namespace rackcast::kernels {
namespace {

__device__ float low_bf16(std::uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ float high_bf16(std::uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

// A warp a token: lane l holds columns 16 l .. 16 l + 15, so that four lanes are one scale group of 64.
__global__ void __launch_bounds__(128) insert_kernel(int tokens, const uint4* rows, const float4* gain, const std::int32_t* slot, std::uint8_t* pool) {
  const int token = static_cast<int>(blockIdx.x) * 4 + static_cast<int>(threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (token >= tokens) return;
  const uint4 raw[2] = {rows[token * 64 + lane * 2], rows[token * 64 + lane * 2 + 1]};
  const auto* words = reinterpret_cast<const std::uint32_t*>(raw);
  float value[16], sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    value[2 * i] = low_bf16(words[i]);
    value[2 * i + 1] = high_bf16(words[i]);
    sum += value[2 * i] * value[2 * i] + value[2 * i + 1] * value[2 * i + 1];
  }
  const float factor = rsqrtf(warp_sum(sum) * (1.0f / 512) + 1e-6f);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float4 g = gain[lane * 4 + i];
    value[4 * i] *= factor * g.x;
    value[4 * i + 1] *= factor * g.y;
    value[4 * i + 2] *= factor * g.z;
    value[4 * i + 3] *= factor * g.w;
  }
  float amax = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) amax = fmaxf(amax, fabsf(value[i]));
  amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, 1));
  amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, 2));
  const int position = slot[token];
  std::uint8_t* out = pool + static_cast<std::size_t>(position) * 584;
  if (lane < 28) {
    const std::uint32_t scale = (__float_as_uint(fmaxf(amax, 1e-10f) * (1.0f / 448)) + 0x7fffffu) >> 23;
    const float inverse = __uint_as_float((254 - scale) << 23);
    std::uint32_t codes[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      codes[i] = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) codes[i] |= static_cast<std::uint32_t>(float_to_e4m3(value[4 * i + j] * inverse)) << (8 * j);
    }
    auto* to = reinterpret_cast<uint2*>(out + lane * 16);  // rows of 584 bytes are 8-byte aligned
    to[0] = make_uint2(codes[0], codes[1]);
    to[1] = make_uint2(codes[2], codes[3]);
    if (lane % 4 == 0) out[576 + lane / 4] = static_cast<std::uint8_t>(scale);
  } else {
    std::uint32_t pairs[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float angle = static_cast<float>(position) * exp2f(static_cast<float>((lane - 28) * 8 + i) * (-13.287712379549449f / 32));
      float sine, cosine;
      sincosf(angle, &sine, &cosine);
      pairs[i] = pack_bf16(value[2 * i] * cosine - value[2 * i + 1] * sine, value[2 * i] * sine + value[2 * i + 1] * cosine);
    }
    auto* to = reinterpret_cast<uint2*>(out + 448 + (lane - 28) * 32);
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = make_uint2(pairs[2 * i], pairs[2 * i + 1]);
    if (lane == 31) out[583] = 0;
  }
}

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

__device__ void named_wait_128() { asm volatile("bar.sync 1, 128;" ::: "memory"); }  // of the first four warps

// A block a group: 128 threads of four columns, four times, each quarter taking every fourth row.
struct Pooled {
  float largest[4], weight[4], total[4];
  __device__ void add(const float (&score)[4], const float (&of_weight)[4], const float (&value)[4]) {  // value: already times its weight
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float next = fmaxf(largest[c], score[c]), kept = __expf(largest[c] - next), factor = __expf(score[c] - next);
      weight[c] = weight[c] * kept + factor * of_weight[c];
      total[c] = total[c] * kept + factor * value[c];
      largest[c] = next;
    }
  }
};
__global__ void __launch_bounds__(512) compress_kernel(int group, const float4* values, const float4* gates, const float4* bias, const float4* gain, uint2* out) {
  __shared__ Pooled quarters[3][128];
  __shared__ float squares[4];
  const int column = threadIdx.x % 128, quarter = threadIdx.x / 128;
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * group * 128 + column;
  Pooled pooled = {{-1e30f, -1e30f, -1e30f, -1e30f}, {}, {}};
  constexpr float ones[4] = {1, 1, 1, 1};
#pragma unroll 4
  for (int row = quarter; row < group; row += 4) {
    const float4 g = gates[first + row * 128], b = __ldg(bias + row * 128 + column), v = values[first + row * 128];
    const float score[4] = {g.x + b.x, g.y + b.y, g.z + b.z, g.w + b.w}, value[4] = {v.x, v.y, v.z, v.w};
    pooled.add(score, ones, value);
  }
  if (quarter > 0) quarters[quarter - 1][column] = pooled;
  __syncthreads();
  if (quarter > 0) return;
  for (int other = 0; other < 3; ++other) pooled.add(quarters[other][column].largest, quarters[other][column].weight, quarters[other][column].total);
  float square = 0;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    pooled.total[c] /= pooled.weight[c];
    square += pooled.total[c] * pooled.total[c];
  }
  square = warp_sum(square);
  if (column % 32 == 0) squares[column / 32] = square;
  named_wait_128();
  const float factor = rsqrtf((squares[0] + squares[1] + squares[2] + squares[3]) * (1.0f / 512) + 1e-6f);
  const float4 g = gain[column];
  const float* total = pooled.total;
  out[blockIdx.x * 128 + column] = make_uint2(pack_bf16(total[0] * factor * g.x, total[1] * factor * g.y), pack_bf16(total[2] * factor * g.z, total[3] * factor * g.w));
}

// Sixteen lanes a row of the table, 16 codes each; rows are 8-byte aligned.
__global__ void __launch_bounds__(256) engram_kernel(int rows, const std::int32_t* index, const std::uint8_t* table, uint4* out) {
  const int row = static_cast<int>(blockIdx.x) * 16 + static_cast<int>(threadIdx.x) / 16, part = threadIdx.x % 16;
  if (row >= rows) return;
  const std::uint8_t* source = table + static_cast<std::size_t>(index[row]) * 264;
  const uint2 raw[2] = {__ldg(reinterpret_cast<const uint2*>(source + part * 16)), __ldg(reinterpret_cast<const uint2*>(source + part * 16 + 8))};
  const float scale = ue8m0_to_float(__ldg(source + 256 + part / 2));
  const auto* codes = reinterpret_cast<const std::uint8_t*>(raw);
  std::uint32_t pairs[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) pairs[i] = pack_bf16(e4m3_to_float(codes[2 * i]) * scale, e4m3_to_float(codes[2 * i + 1]) * scale);
  out[row * 32 + part * 2] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  out[row * 32 + part * 2 + 1] = make_uint4(pairs[4], pairs[5], pairs[6], pairs[7]);
}

__device__ float gumbel(std::uint64_t seed, int row, int token) {
  const float uniform = (static_cast<float>(random_bits(seed + row, token) >> 41) + 0.5f) * 0x1p-23f;  // exact, never 1
  return -__logf(-logf(uniform));  // the winners' uniforms are near 1, where the fast logarithm has no digits left
}

// What a part of a row knows: maximum and sum of the softmax, the best noisy logit.
struct RowPart {
  float largest = -1e30f, sum = 0, best = -1e30f;
  int token = 0;
  __device__ void add(const RowPart& other) {
    const float next = fmaxf(largest, other.largest);
    sum = sum * __expf(largest - next) + other.sum * __expf(other.largest - next);
    largest = next;
    if (other.best > best) best = other.best, token = other.token;
  }
  __device__ void across_warp() {
    for (int step = 16; step > 0; step >>= 1) {
      RowPart other;
      other.largest = __shfl_xor_sync(0xffffffffu, largest, step);
      other.sum = __shfl_xor_sync(0xffffffffu, sum, step);
      other.best = __shfl_xor_sync(0xffffffffu, best, step);
      other.token = __shfl_xor_sync(0xffffffffu, token, step);
      add(other);
    }
  }
};
static_assert(sizeof(RowPart) == 16);

// blockIdx.x takes one of verify_splits parts of row blockIdx.y, one pass.
__global__ void __launch_bounds__(512) verify_kernel(int vocabulary, const __nv_bfloat16* logits, const std::int32_t* drafts, std::uint64_t seed, RowPart* parts) {
  __shared__ RowPart warps[16];
  const int row = static_cast<int>(blockIdx.y), draft = drafts[row], lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const __nv_bfloat16* mine = logits + static_cast<std::size_t>(row) * vocabulary;
  const int share = (vocabulary + verify_splits - 1) / verify_splits, begin = static_cast<int>(blockIdx.x) * share, end = min(begin + share, vocabulary);
  RowPart part;
  for (int token = begin + static_cast<int>(threadIdx.x); token < end; token += 512) {
    const float logit = __bfloat162float(mine[token]);
    RowPart one;
    one.largest = logit;
    one.sum = 1;
    one.best = token == draft ? -1e30f : logit + gumbel(seed, row, token);
    one.token = token;
    part.add(one);
  }
  part.across_warp();
  if (lane == 0) warps[warp] = part;
  __syncthreads();
  if (warp > 0) return;
  part = lane < 16 ? warps[lane] : RowPart();
  part.across_warp();
  if (lane == 0) parts[row * verify_splits + blockIdx.x] = part;
}

__global__ void __launch_bounds__(32) verdict_kernel(int vocabulary, const __nv_bfloat16* logits, const std::int32_t* drafts, const RowPart* parts, Verdict* verdicts) {
  const int row = static_cast<int>(blockIdx.x), lane = threadIdx.x;
  RowPart part = lane < verify_splits ? parts[row * verify_splits + lane] : RowPart();
  part.across_warp();
  if (lane == 0) verdicts[row] = {__expf(__bfloat162float(logits[static_cast<std::size_t>(row) * vocabulary + drafts[row]]) - part.largest) / part.sum, part.token};
}

unsigned blocks_for(std::size_t count, std::size_t a_block) { return static_cast<unsigned>((count + a_block - 1) / a_block); }

}  // namespace

void launch_insert(int tokens, const void* row, const float* gain, const std::int32_t* slot, std::uint8_t* pool, Stream stream) {
  insert_kernel<<<blocks_for(static_cast<std::size_t>(tokens), 4), 128, 0, stream>>>(tokens, static_cast<const uint4*>(row), reinterpret_cast<const float4*>(gain), slot, pool);
  RACKCAST_LAUNCH_CHECK();
}
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
void launch_compress(int tokens, int group, const float* values, const float* gates, const float* bias, const float* gain, void* out, Stream stream) {
  const auto four = [](const float* p) { return reinterpret_cast<const float4*>(p); };
  compress_kernel<<<static_cast<unsigned>(tokens / group), 512, 0, stream>>>(group, four(values), four(gates), four(bias), four(gain), static_cast<uint2*>(out));
  RACKCAST_LAUNCH_CHECK();
}
void launch_engram(int tokens, const std::int32_t* index, const std::uint8_t* table, void* out, Stream stream) {
  engram_kernel<<<blocks_for(static_cast<std::size_t>(tokens) * 24, 16), 256, 0, stream>>>(tokens * 24, index, table, static_cast<uint4*>(out));
  RACKCAST_LAUNCH_CHECK();
}
void launch_verify(int rows, int vocabulary, const void* logits, const std::int32_t* drafts, std::uint64_t seed, float* scratch, Verdict* verdicts, Stream stream) {
  const auto* data = static_cast<const __nv_bfloat16*>(logits);
  auto* parts = reinterpret_cast<RowPart*>(scratch);
  verify_kernel<<<dim3(verify_splits, static_cast<unsigned>(rows)), 512, 0, stream>>>(vocabulary, data, drafts, seed, parts);
  RACKCAST_LAUNCH_CHECK();
  verdict_kernel<<<static_cast<unsigned>(rows), 32, 0, stream>>>(vocabulary, data, drafts, parts, verdicts);
  RACKCAST_LAUNCH_CHECK();
}

}  // namespace rackcast::kernels
