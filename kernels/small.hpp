// Host half of the small kernels of a layer: their mathematics in double.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace rackcast::kernels {

// insert: RMSNorm over 512 (eps 1e-6), rotary embedding of the last 64 (pairs 2i, 2i+1; angle position * 10000^(-2i/64)),
// then a cache row of 584 bytes: 448 e4m3, 64 bf16, 7 UE8M0 scales (one a 64), one byte of padding.
struct CacheRow {
  std::vector<double> values;  // 512, before quantisation
};
CacheRow reference_cache_row(const std::vector<double>& row, const std::vector<double>& gain, int position);

// mhc: four residual streams x [4][H]. logits = W [24][4 H] flat(x) / rms(flat(x)); pre_i = sigmoid(logit_i),
// post_i = 2 sigmoid(logit_{4+i}), comb = 20 Sinkhorn rounds (rows, then columns) of exp(logit_{8+4i+j}).
// pre: y = sum_i pre_i x_i.  post: x'_i = post_i o + sum_j comb_ij x_j.
struct Mixing {
  std::array<double, 4> pre{}, post{};
  std::array<double, 16> comb{};
};
Mixing reference_mixing(const std::array<double, 24>& logits);

// compress: a group of r rows [r][512] becomes one: softmax over the group of gate + bias [r][512], weighted sum, RMSNorm.
std::vector<double> reference_compress(const std::vector<double>& values, const std::vector<double>& gates, const std::vector<double>& bias,
                                       const std::vector<double>& gain);

}  // namespace rackcast::kernels
