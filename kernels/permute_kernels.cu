// Floors at 4.3 TB/s, V4.1 (H = 5120, top 6): permute 42 kB a token, 9.8 ns; unpermute 82 kB a token, 19 ns; two and one
// kernels, so 3-5 us and 2-3 us for few tokens.
#include <cooperative_groups.h>

#include <type_traits>
#include <utility>

#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/early_launch.hpp"
#include "kernels/permute_device.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {
namespace {

constexpr int threads = 256;
constexpr int positions_threads = 1024;
constexpr int max_experts = 512;

// One cluster, whose blocks share the tokens. A block counts its choices in shared memory, reads the counts of the others, and
// then knows where its rows of every expert begin.
__global__ void __cluster_dims__(positions_blocks, 1, 1) __launch_bounds__(positions_threads) positions_kernel(const Permutation p) {
  __shared__ int counts[max_experts];
  __shared__ int before_warp[max_experts / 32];
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");  // the scatter may read and quantise its tokens meanwhile
  const auto cluster = cooperative_groups::this_cluster();
  const int mine = static_cast<int>(cluster.block_rank()), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int share = p.share(), first = min(mine * share, p.tokens) * p.top_k, last = min((mine + 1) * share, p.tokens) * p.top_k;
  for (int e = threadIdx.x; e < p.experts; e += positions_threads) counts[e] = 0;
  __syncthreads();
  for (int at = first + static_cast<int>(threadIdx.x); at < last; at += 4 * positions_threads) {
    int expert[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) expert[i] = at + i * positions_threads < last ? p.ids[at + i * positions_threads] : -1;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (expert[i] >= 0) p.rank[at + i * positions_threads] = atomicAdd(&counts[expert[i]], 1);
  }
  cluster.sync();
  const int e = static_cast<int>(threadIdx.x);
  int before = 0, total = 0;
  if (e < p.experts)
    for (int block = 0; block < positions_blocks; ++block) {
      const int theirs = *cluster.map_shared_rank(&counts[e], block);
      before += block < mine ? theirs : 0;
      total += theirs;
    }
  const int rows = (total + p.align - 1) / p.align * p.align;
  int up_to = rows;  // inclusive scan
  for (int step = 1; step < 32; step <<= 1) {
    const int other = __shfl_up_sync(0xffffffffu, up_to, step);
    if (lane >= step) up_to += other;
  }
  if (lane == 31 && warp < max_experts / 32) before_warp[warp] = up_to;
  auto read = cluster.barrier_arrive();  // the others' counts are read
  __syncthreads();
  if (e < p.experts) {
    int offset = up_to - rows;
    for (int w = 0; w < warp; ++w) offset += before_warp[w];
    p.base[mine * p.experts + e] = offset + before;
    if (mine == 0) {
      p.offset[e] = offset;
      p.count[e] = total;
    }
  }
  cluster.barrier_wait(std::move(read));
#endif
}

// The smallest power of two that keeps amax within e4m3's 448.
__device__ float power_scale(float amax) {
  const float exact = fmaxf(amax, 1e-10f) * (1.0f / 448.0f);
  return __uint_as_float((__float_as_uint(exact) + 0x7fffffu) & 0xff800000u);
}

// Eight threads take 128 columns of a token, sixteen columns each.
template <int TopK>
__global__ void __launch_bounds__(threads) scatter_kernel(const Permutation p, const uint4* x, const QuantisedRows rows) {
  const int groups = p.hidden / 128;
  const long long group = (static_cast<long long>(blockIdx.x) * threads + threadIdx.x) / 8;
  if (group >= static_cast<long long>(p.tokens) * groups) return;
  const int token = static_cast<int>(group / groups), block = static_cast<int>(group % groups), part = threadIdx.x % 8;
  const uint4* source = x + (static_cast<std::size_t>(token) * p.hidden + block * 128 + part * 16) / 8;
  const uint4 raw[2] = {__ldcs(source), __ldcs(source + 1)};
  float value[16];
  float amax = 0;
  const auto* words = reinterpret_cast<const std::uint32_t*>(raw);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    value[2 * i] = low_bf16(words[i]);
    value[2 * i + 1] = high_bf16(words[i]);
    amax = fmaxf(amax, fmaxf(fabsf(value[2 * i]), fabsf(value[2 * i + 1])));
  }
  const unsigned mine = 0xffu << (threadIdx.x & 24);
  for (int step = 1; step < 8; step <<= 1) amax = fmaxf(amax, __shfl_xor_sync(mine, amax, step));
  const float scale = power_scale(amax), inverse = __uint_as_float(0x7f000000u - __float_as_uint(scale));  // of a power of two: exact
  std::uint32_t packed[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const auto low = __nv_cvt_float2_to_fp8x2(make_float2(value[4 * i] * inverse, value[4 * i + 1] * inverse), __NV_SATFINITE, __NV_E4M3);
    const auto high = __nv_cvt_float2_to_fp8x2(make_float2(value[4 * i + 2] * inverse, value[4 * i + 3] * inverse), __NV_SATFINITE, __NV_E4M3);
    packed[i] = static_cast<std::uint32_t>(low) | static_cast<std::uint32_t>(high) << 16;
  }
  const uint4 codes = make_uint4(packed[0], packed[1], packed[2], packed[3]);
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");  // for the positions; the tokens are read and quantised already
#endif
  const int* base = p.base + token / p.share() * p.experts;
  int row[TopK];
#pragma unroll
  for (int choice = 0; choice < TopK; ++choice) {
    const int at = token * TopK + choice;
    row[choice] = base[__ldg(p.ids + at)] + p.rank[at];
  }
#pragma unroll
  for (int choice = 0; choice < TopK; ++choice)  // streamed, so that the scattered scales below stay in L2 until their sectors are full
    __stcs(reinterpret_cast<uint4*>(rows.codes + static_cast<std::size_t>(row[choice]) * p.hidden + block * 128 + part * 16), codes);
#pragma unroll
  for (int choice = 0; choice < TopK; ++choice)  // one store for all of them, each by a thread of its own
    if (part == choice) {
      rows.scales[static_cast<std::size_t>(block) * rows.pitch + row[choice]] = scale;
      if (block == 0) p.position[token * TopK + choice] = row[choice];
    }
}

// A thread takes eight columns of a token; TopK loads are in flight together.
template <int TopK>
__global__ void __launch_bounds__(threads) unpermute_kernel(const Permutation p, const uint4* rows, const float* weights, const uint4* shared, uint4* y) {
  const int chunks = p.hidden / 8;
  const long long at = static_cast<long long>(blockIdx.x) * threads + threadIdx.x;
  if (at >= static_cast<long long>(p.tokens) * chunks) return;
  const int token = static_cast<int>(at / chunks), chunk = static_cast<int>(at % chunks);
  uint4 data[TopK];
  float weight[TopK];
#pragma unroll
  for (int choice = 0; choice < TopK; ++choice) {
    data[choice] = __ldcs(rows + static_cast<std::size_t>(__ldg(p.position + token * TopK + choice)) * chunks + chunk);
    weight[choice] = __ldg(weights + token * TopK + choice);
  }
  float sum[8] = {};
  const auto add = [&](const uint4& raw, float factor) {
    const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sum[2 * i] += factor * low_bf16(words[i]);
      sum[2 * i + 1] += factor * high_bf16(words[i]);
    }
  };
  if (shared) add(__ldcs(shared + at), 1.0f);
#pragma unroll
  for (int choice = 0; choice < TopK; ++choice) add(data[choice], weight[choice]);
  __stcs(y + at, make_uint4(pack_bf16(sum[0], sum[1]), pack_bf16(sum[2], sum[3]), pack_bf16(sum[4], sum[5]), pack_bf16(sum[6], sum[7])));
}

// Calls go with std::integral_constant<int, top_k>.
template <typename Go>
void with_top_k(int top_k, Go go) {
  switch (top_k) {
    case 1: return go(std::integral_constant<int, 1>());
    case 2: return go(std::integral_constant<int, 2>());
    case 3: return go(std::integral_constant<int, 3>());
    case 4: return go(std::integral_constant<int, 4>());
    case 6: return go(std::integral_constant<int, 6>());
    case 8: return go(std::integral_constant<int, 8>());
    default: RACKCAST_CHECK(false, "permute does not do this top_k");
  }
}

}  // namespace

void launch_positions(const Permutation& p, Stream stream) {
  RACKCAST_CHECK(p.experts <= max_experts, "too many experts");
  launch_early({positions_blocks, positions_threads, stream}, positions_kernel, p);
}

void launch_scatter(const Permutation& p, const void* x, const QuantisedRows& rows, Stream stream) {
  const auto groups = static_cast<std::size_t>(p.hidden / 128);
  const EarlyLaunch launch{blocks_for(static_cast<std::size_t>(p.tokens) * groups * 8, threads), threads, stream};
  with_top_k(p.top_k, [&](auto k) { launch_early(launch, scatter_kernel<k.value>, p, static_cast<const uint4*>(x), rows); });
}

void launch_unpermute(const Permutation& p, const void* rows, const float* weights, const void* shared, void* y, Stream stream) {
  const unsigned blocks = blocks_for(static_cast<std::size_t>(p.tokens) * static_cast<std::size_t>(p.hidden / 8), threads);
  with_top_k(p.top_k, [&](auto k) {
    unpermute_kernel<k.value><<<blocks, threads, 0, stream>>>(p, static_cast<const uint4*>(rows), weights, static_cast<const uint4*>(shared), static_cast<uint4*>(y));
  });
  RACKCAST_LAUNCH_CHECK();
}

}  // namespace rackcast::kernels
