#include "calib/fit_work.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cost/expert_tile.hpp"
#include "sim/cost/experts.hpp"

namespace rackcast::calib {

void gemm_work(FitPoint& p, double m, double n, double k, WeightType type) {
  const double input = type == WeightType::bf16 ? 2 : 1;
  p.rows = m;
  p.exact = {.n = static_cast<int>(n), .k = static_cast<int>(k)};
  p.flops = 2 * m * n * k;
  p.weight_bytes = n * k * bytes_per_weight(type);
  p.depth = k;
  p.bytes = p.weight_bytes + m * (k * input + n * 2);
}

void expert_work(FitPoint& p, const ExpertLayer& l, double tokens, double ranks, WeightType type) {
  const double parameters = 3 * l.hidden * l.intermediate;
  const double rows = tokens * l.top_k / ranks;
  const double slots = l.experts / ranks, touched = std::min(slots, rows);
  const double tile = expert_tile(tokens * l.top_k / slots);
  p.flops = 2 * parameters * rows;
  p.padded_flops = 2 * parameters * touched * tile * std::ceil(std::max(1.0, rows / touched) / tile);
  p.depth = (l.hidden + l.intermediate) * tile / largest_expert_tile;
  p.weight_bytes = touched * parameters * bytes_per_weight(type);
  p.bytes = p.weight_bytes + rows * (3 * l.hidden + 2 * l.intermediate);
  p.ranks = ranks;
  p.units = tokens;  // single-rank tables pass every token through permutation
}

void fused_expert_work(FitPoint& p, const ExpertLayer& l, double tokens, double ranks, WeightType type) {
  expert_work(p, l, tokens * ranks, ranks, type);
  p.rows = tokens;
  p.exact = {.hidden = static_cast<int>(l.hidden), .intermediate = static_cast<int>(l.intermediate), .experts = static_cast<int>(l.experts),
             .top_k = static_cast<int>(l.top_k), .ranks = static_cast<int>(ranks)};
  p.link_bytes = tokens * l.top_k * 3 * l.hidden * (ranks - 1) / ranks;
  p.reduce_bytes = tokens * l.hidden * 2 * (1 + l.top_k);
}

void exchange_work(FitPoint& p, const ExpertLayer& l, double tokens, double ranks, double bytes_per_copy, bool unique) {
  const double copies = unique ? distinct_ranks(static_cast<int>(ranks), static_cast<int>(l.experts), static_cast<int>(l.top_k)) : l.top_k;
  p.link_bytes = tokens * copies * bytes_per_copy * (ranks - 1) / ranks;
  p.ranks = ranks;
}

}  // namespace rackcast::calib
