// Radix selection of the k largest scores, 11 + 11 + 10 bits. A cluster of CTAs shares a row: each counts its part in
// shared memory, sums a slice of the bins over all CTAs, and spreads the sums, so that every CTA finds the same bin.
// Scores stay in registers between the passes where they fit (up to 32 a thread), else they are read again.
#include <cooperative_groups.h>

#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/topk_kernels.hpp"

namespace rackcast::kernels {
namespace {

namespace cg = cooperative_groups;
constexpr int threads = 1024;
constexpr int bins = 2048;

// Larger scores have larger keys; 0 is below every score.
__device__ inline std::uint32_t key_of(float score) {
  const std::uint32_t bits = __float_as_uint(score);
  return bits ^ ((bits >> 31) ? 0xffffffffu : 0x80000000u);
}

template <int group>
__device__ inline std::uint32_t candidate(const float* scores, int at, int candidates) {
  if (at >= candidates) return 0;
  if constexpr (group == 1) return key_of(__ldg(scores + at));
  const float4* eight = reinterpret_cast<const float4*>(scores) + 2 * static_cast<std::size_t>(at);
  const float4 a = __ldg(eight), b = __ldg(eight + 1);
  return key_of(fmaxf(fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w)), fmaxf(fmaxf(b.x, b.y), fmaxf(b.z, b.w))));
}

struct Shared {
  unsigned counts[bins];
  unsigned totals[bins];
  unsigned warp_sums[32];
  unsigned bin, above;         // the bin that holds the k-th, and how many lie above it
  unsigned larger, equal;      // rank 0: places handed out so far
  unsigned base_larger, base_equal;
};

// Sum of `value` over the threads before this one.
__device__ inline unsigned exclusive_sum(unsigned value, unsigned* warp_sums, unsigned& total) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  unsigned inclusive = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const unsigned other = __shfl_up_sync(0xffffffffu, inclusive, step);
    if (lane >= step) inclusive += other;
  }
  if (lane == 31) warp_sums[warp] = inclusive;
  __syncthreads();
  if (warp == 0) {
    unsigned sum = warp_sums[lane];
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const unsigned other = __shfl_up_sync(0xffffffffu, sum, step);
      if (lane >= step) sum += other;
    }
    warp_sums[lane] = sum;
  }
  __syncthreads();
  const unsigned before = (warp ? warp_sums[warp - 1] : 0u) + inclusive - value;
  total = warp_sums[31];
  return before;
}

__device__ inline void count(unsigned* counts, bool wanted, unsigned bin) {
  // All lanes alike (ties, sorted scores): one addition instead of 32 that wait for each other.
  const unsigned mask = __ballot_sync(0xffffffffu, wanted);
  if (mask == 0) return;
  const int leader = __ffs(static_cast<int>(mask)) - 1;
  const unsigned first = __shfl_sync(0xffffffffu, bin, leader);
  if (__all_sync(0xffffffffu, !wanted || bin == first)) {
    if ((threadIdx.x & 31) == leader) atomicAdd(counts + first, static_cast<unsigned>(__popc(mask)));
  } else if (wanted) {
    atomicAdd(counts + bin, 1u);
  }
}

template <int held, int group>
__global__ void __launch_bounds__(threads, 1) select_kernel(const __grid_constant__ TopkParams p) {
  __shared__ Shared shared;
  const cg::cluster_group cluster = cg::this_cluster();
  const int parts = static_cast<int>(cluster.num_blocks()), part = static_cast<int>(cluster.block_rank());
  const int row = blockIdx.x / parts, thread = threadIdx.x;
  const float* scores = p.scores + static_cast<std::size_t>(row) * p.stride;
  const int candidates = p.count / group, wanted = min(p.k, candidates);
  std::int32_t* chosen = p.chosen + static_cast<std::size_t>(row) * p.k;
  const int per_part = ((candidates + parts - 1) / parts + threads - 1) / threads * threads;
  const int first = part * per_part, steps = held ? held : per_part / threads;

  std::uint32_t keys[held ? held : 1];
  if constexpr (held > 0) {
#pragma unroll
    for (int i = 0; i < held; ++i) keys[i] = i * threads < per_part ? candidate<group>(scores, first + i * threads + thread, candidates) : 0;
  }
  const auto key_at = [&](int i) {
    if constexpr (held > 0) return keys[i];
    else return candidate<group>(scores, first + i * threads + thread, candidates);
  };

  if (thread == 0) shared.larger = shared.equal = 0;
  std::uint32_t prefix = 0;
  unsigned need = static_cast<unsigned>(wanted);
#pragma unroll
  for (int pass = 0; pass < 3; ++pass) {
    constexpr int shifts[3] = {21, 10, 0}, widths[3] = {11, 11, 10};
    const int shift = shifts[pass], width = widths[pass];
    for (int b = thread; b < bins; b += threads) shared.counts[b] = 0;
    __syncthreads();
    if constexpr (held > 0) {
#pragma unroll
      for (int i = 0; i < held; ++i) count(shared.counts, pass == 0 ? keys[i] != 0 : keys[i] >> (shift + width) == prefix, keys[i] >> shift & ((1u << width) - 1));
    } else {
      for (int i = 0; i < steps; ++i) {
        const std::uint32_t key = key_at(i);
        count(shared.counts, pass == 0 ? key != 0 : key >> (shift + width) == prefix, key >> shift & ((1u << width) - 1));
      }
    }
    const unsigned* totals = shared.counts;
    if (parts > 1) {
      cluster.sync();
      const int slice = bins / parts;
      if (thread < slice) {
        const int b = part * slice + thread;
        unsigned sum = 0;
#pragma unroll 8
        for (int c = 0; c < parts; ++c) sum += *cluster.map_shared_rank(shared.counts + b, static_cast<unsigned>(c));
#pragma unroll 8
        for (int c = 0; c < parts; ++c) *cluster.map_shared_rank(shared.totals + b, static_cast<unsigned>(c)) = sum;
      }
      cluster.sync();
      totals = shared.totals;
    } else {
      __syncthreads();
    }
    const unsigned upper = totals[bins - 1 - 2 * thread], lower = totals[bins - 2 - 2 * thread];  // from the top
    unsigned all;
    const unsigned above = exclusive_sum(upper + lower, shared.warp_sums, all);
    if (above < need && need <= above + upper + lower) {
      const bool in_upper = need <= above + upper;
      shared.bin = static_cast<unsigned>(in_upper ? bins - 1 - 2 * thread : bins - 2 - 2 * thread);
      shared.above = in_upper ? above : above + upper;
    }
    __syncthreads();
    prefix = prefix << width | shared.bin;
    need -= shared.above;
  }

  // prefix is the k-th key; all larger ones are taken, and `need` of those equal to it.
  unsigned larger = 0, equal = 0;
  if constexpr (held > 0) {
#pragma unroll
    for (int i = 0; i < held; ++i) {
      larger += keys[i] > prefix;
      equal += keys[i] == prefix;
    }
  } else {
    for (int i = 0; i < steps; ++i) {
      const std::uint32_t key = key_at(i);
      larger += key > prefix;
      equal += key == prefix;
    }
  }
  unsigned total;  // both sums at once: at most k (<= 2^14) larger ones, equal ones saturate at k
  equal = min(equal, static_cast<unsigned>(p.k));
  unsigned place_larger = exclusive_sum(larger, shared.warp_sums, total);
  const unsigned total_larger = total;
  __syncthreads();
  unsigned place_equal = exclusive_sum(equal, shared.warp_sums, total);
  if (thread == 0) {
    shared.base_larger = total_larger ? atomicAdd(cluster.map_shared_rank(&shared.larger, 0), total_larger) : 0;
    shared.base_equal = total ? atomicAdd(cluster.map_shared_rank(&shared.equal, 0), total) : 0;
  }
  __syncthreads();
  place_larger += shared.base_larger;
  place_equal += shared.base_equal;
  const auto put = [&](std::uint32_t key, int i) {
    if (key > prefix) chosen[place_larger++] = first + i * threads + thread;
    else if (key == prefix && place_equal < need) chosen[static_cast<unsigned>(wanted) - need + place_equal++] = first + i * threads + thread;
  };
  if constexpr (held > 0) {
#pragma unroll
    for (int i = 0; i < held; ++i) put(keys[i], i);
  } else {
    for (int i = 0; i < steps; ++i) put(key_at(i), i);
  }
  if (part == 0)
    for (int i = wanted + thread; i < p.k; i += threads) chosen[i] = -1;
  if (parts > 1) cluster.sync();  // rank 0's counters must outlive the others' additions
}

template <int held, int group>
void launch(const TopkParams& params, int cluster, Stream stream) {
  auto* kernel = select_kernel<held, group>;
  static const cudaError_t prepared = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  RACKCAST_CUDA_CHECK(prepared);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(params.rows * cluster));
  config.blockDim = dim3(threads);
  config.stream = stream;
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(cluster);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  RACKCAST_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, params));
}

template <int group>
void launch_for(const TopkParams& params, int cluster, Stream stream) {
  const int candidates = params.count / group, per_thread = ((candidates + cluster - 1) / cluster + threads - 1) / threads;
  if (per_thread <= 2) launch<2, group>(params, cluster, stream);
  else if (per_thread <= 8) launch<8, group>(params, cluster, stream);
  else if (per_thread <= 16) launch<16, group>(params, cluster, stream);
  else if (per_thread <= 32) launch<32, group>(params, cluster, stream);
  else launch<0, group>(params, cluster, stream);
}

}  // namespace

int topk_cluster(const TopkParams& params, int sm_count) {
  const int candidates = params.count / params.group;
  int cluster = 1;
  // More CTAs a row while they are free and each still has 2,048 candidates or more.
  while (cluster < 16 && params.rows * cluster * 2 <= sm_count && candidates / (cluster * 2) >= 2048) cluster *= 2;
  return cluster == 16 && params.rows > 4 ? 8 : cluster;  // clusters of 16 must each fit into one GPC
}

void topk_select(const TopkParams& params, int cluster, Stream stream) {
  if (params.group == 1) launch_for<1>(params, cluster, stream);
  else launch_for<8>(params, cluster, stream);
}

}  // namespace rackcast::kernels
