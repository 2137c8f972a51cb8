// Family collectives: NCCL's all-reduce, all-gather, reduce-scatter and all-to-all between the ranks.
// Sizes and bandwidths as nccl-tests defines them (its PERFORMANCE.md): bytes = what one rank holds of the larger side;
// algbw = bytes / time; busbw = algbw * bus_factor, comparable with the link's rate whatever the number of ranks.
#pragma once
#include <string>

#include "kernels/family.hpp"

namespace rackcast::kernels {

// 2(n-1)/n for all_reduce, (n-1)/n for the others.
double bus_factor(const std::string& collective, int ranks);

}  // namespace rackcast::kernels
