// Sparse latent attention: every token attends to its own list of KV rows (a window and a top-k selection), all heads
// share one latent row that is both key and value. Formats of a row (512 values):
//   bf16  1024 B.
//   v4    584 B: 448 e4m3 in 7 groups of 64, then 64 bf16; 7 UE8M0 group scales, 1 B pad. A page of 64 rows holds the
//         64 x 576 B of values first, then the 64 x 8 B of scales. Scales are at most 2^7.
//   v41   window rows 528 B: 512 e4m3, then 16 UE8M0 scales (groups of 32, at most 2^7); selected rows 288 B: 512 e2m1
//         (even value in the low nibble), then 32 e4m3 scales (groups of 16).
// out = sum_k p_k v_k / (sum_k p_k + exp(sink - max)), p_k = exp(scale q.k - max); lse = log sum_k exp(scale q.k), the
// sink not in it. A token without rows: out 0, lse -inf. An index of -1 is no row.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/family.hpp"

namespace rackcast::kernels {

constexpr int latent_dims = 512;
constexpr int latent_heads = 64;
constexpr int page_rows = 64;
constexpr std::int64_t prefill_pool_rows = 8192;  // compressed rows of the context that a prefill launch selects from

enum class KvFormat { bf16, v4, v41 };
KvFormat kv_format(const std::string& name);
double kv_row_bytes(KvFormat format, bool selected);  // mean bytes that a row takes

// One head of one token. keys: rows x dims, values: rows x value_dims (same memory in the latent case).
struct AttentionRow {
  std::vector<double> out;
  double lse = 0;
};
AttentionRow attention_reference(std::span<const double> query, std::span<const double> keys, std::span<const double> values,
                                 std::size_t value_dims, double scale, double sink);

}  // namespace rackcast::kernels
