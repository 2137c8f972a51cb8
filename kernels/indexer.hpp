// The indexer's logits: logit(t, n) = scale_n * sum over heads h of weight(t, h) * max(q(t, h) . k(n), 0), 128 values a
// head, e4m3, one fp32 scale a key. Keys lie in pages of 64: 64 x 128 B of values, then 64 scales (132 B a key).
// Dense: every token of a request against all its keys. Sparse: token t against its own list of blocks of 8 keys.
#pragma once
#include <span>

#include "kernels/family.hpp"

namespace rackcast::kernels {

constexpr int index_dims = 128;
constexpr int index_page = 64;
constexpr int index_block = 8;  // keys of a block in the sparse form
constexpr int index_page_bytes = index_page * (index_dims + 4);

// query: heads x 128, weights: heads, key: 128.
double indexer_reference(std::span<const double> query, std::span<const double> weights, std::span<const double> key, double key_scale);

}  // namespace rackcast::kernels
