// FP64 attention of sampled (item, row) pairs on the GPU, one CTA a pair: plain two-pass softmax, rows fetched by Source.
//   double query(item, row, dim), bool visible(item, row, k), double value(item, k, dim), double sink(item, row)
// value(.., dim) for dim >= value_dims is key only. keys(item) <= shared logits.
#pragma once
#include "kernels/device.cuh"

namespace rackcast::kernels {

struct SampledRow {
  std::int32_t item = 0;
  std::int32_t row = 0;
};

template <typename Source>
__global__ void attention_reference_kernel(Source source, const SampledRow* samples, int qk_dims, int value_dims, double scale, double* logits,
                                           int most_keys, double* out, double* lse) {
  const SampledRow sample = samples[blockIdx.x];
  const int keys = source.keys(sample.item), thread = threadIdx.x, threads = blockDim.x;
  double* mine = logits + static_cast<std::size_t>(blockIdx.x) * most_keys;
  __shared__ double shared[256];
  constexpr double minus_infinity = -__builtin_huge_val();
  double largest = minus_infinity;
  for (int k = thread; k < keys; k += threads) {
    double dot = minus_infinity;
    if (source.visible(sample.item, sample.row, k)) {
      dot = 0;
      for (int d = 0; d < qk_dims; ++d) dot += source.query(sample.item, sample.row, d) * source.value(sample.item, k, d);
      dot *= scale;
    }
    mine[k] = dot;
    largest = fmax(largest, dot);
  }
  const auto reduce = [&](double value, bool maximum) {
    __syncthreads();
    shared[thread] = value;
    __syncthreads();
    for (int step = threads / 2; step > 0; step /= 2) {
      if (thread < step) shared[thread] = maximum ? fmax(shared[thread], shared[thread + step]) : shared[thread] + shared[thread + step];
      __syncthreads();
    }
    return shared[0];
  };
  largest = reduce(largest, true);
  const bool any = largest > minus_infinity;
  double sum = 0;
  for (int k = thread; k < keys; k += threads) {
    mine[k] = any ? exp(mine[k] - largest) : 0;
    sum += mine[k];
  }
  sum = reduce(sum, false);
  const double denominator = any ? sum + exp(source.sink(sample.item, sample.row) - largest) : 1;
  for (int d = thread; d < value_dims; d += threads) {
    double total = 0;
    for (int k = 0; k < keys; ++k)
      if (mine[k] != 0) total += mine[k] * source.value(sample.item, k, d);
    out[static_cast<std::size_t>(blockIdx.x) * value_dims + d] = total / denominator;
  }
  if (thread == 0) lse[blockIdx.x] = any ? largest + log(sum) : minus_infinity;
}

}  // namespace rackcast::kernels
