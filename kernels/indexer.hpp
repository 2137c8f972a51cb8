// The indexer's logits: logit(t, n) = scale_n * sum over heads h of weight(t, h) * max(q(t, h) . k(n), 0), 128 values a
// head, queries in e4m3. Keys lie in pages of 64, values first, then scales. fp8: 128 B of e4m3 and one fp32 scale a key
// (132 B); fp4: 64 B of e2m1 (the even value in the low nibble) and four UE8M0 scales, one a 32 values (68 B).
// Dense: every token of a request against all its keys. Sparse: token t against its own list of blocks of 8 keys.
#pragma once
#include <span>

#include "kernels/family.hpp"

namespace rackcast::kernels {

constexpr int index_dims = 128;
constexpr int index_page = 64;
constexpr int index_block = 8;  // keys of a block in the sparse form
constexpr int index_key_bytes(bool fp4) { return fp4 ? index_dims / 2 + 4 : index_dims + 4; }
constexpr int index_page_bytes = index_page * (index_dims + 4);  // of fp8 keys
constexpr int index_page_bytes_of(bool fp4) { return index_page * index_key_bytes(fp4); }

// query: heads x 128, weights: heads, key: 128.
double indexer_reference(std::span<const double> query, std::span<const double> weights, std::span<const double> key, double key_scale);

}  // namespace rackcast::kernels
