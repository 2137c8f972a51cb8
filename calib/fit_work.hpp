// Work of a launch as the operators of sim/cost count it, so that fitted parameters mean the same there.
#pragma once
#include "calib/fit_form.hpp"
#include "sim/cost/shapes.hpp"

namespace rackcast::calib {

// m x k x n; activations are read as FP8 or BF16 and written as BF16.
void gemm_work(FitPoint& point, double m, double n, double k, WeightType type);

struct ExpertLayer {
  double hidden = 0, intermediate = 0, experts = 0, top_k = 0;
};
// One rank of `ranks`; tokens of the whole engine. Tables call it balanced when every expert gets equally many rows: few
// tokens touch as many experts as they can.
void expert_work(FitPoint& point, const ExpertLayer& layer, double tokens, double ranks, WeightType type);
// Fused with its exchange: tokens of each rank.
void fused_expert_work(FitPoint& point, const ExpertLayer& layer, double tokens_per_rank, double ranks, WeightType type);
// One direction of the all-to-all; unique: once to each rank that needs the token, else once per expert.
void exchange_work(FitPoint& point, const ExpertLayer& layer, double tokens_per_rank, double ranks, double bytes_per_copy, bool unique);

}  // namespace rackcast::calib
