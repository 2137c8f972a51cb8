// KV insert, compressor and Engram gather. Floor: one node of a graph, 1.3-2 us, until the bytes count.
#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/small_device.hpp"

namespace rackcast::kernels {
namespace {

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

}  // namespace

void launch_insert(int tokens, const void* row, const float* gain, const std::int32_t* slot, std::uint8_t* pool, Stream stream) {
  insert_kernel<<<blocks_for(static_cast<std::size_t>(tokens), 4), 128, 0, stream>>>(tokens, static_cast<const uint4*>(row), reinterpret_cast<const float4*>(gain), slot, pool);
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
}  // namespace rackcast::kernels
