// Dense multi-head latent attention in its absorbed form: every head's query is 576 values (512 latent + 64 rope), every
// KV row 576 bf16 values of which the first 512 are also the value. Query token i of n sees the first context - n + i + 1
// rows. For R1 (128 heads, 16 a rank at TP8) and Kimi (64 heads). Prefill in the same form: it computes 3.4 times the
// products of the expanded form, and needs no expansion of the cache.
#pragma once
#include "kernels/family.hpp"

namespace rackcast::kernels {

constexpr int mla_qk_dims = 576;
constexpr int mla_value_dims = 512;

// Sum over query tokens of the KV rows that they see.
double mla_visible_rows(double context, double query_tokens);

}  // namespace rackcast::kernels
