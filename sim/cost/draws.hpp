// Parameter sets for uncertainty bands: each draw moves every family of a cost file within its intervals.
// Within a family all parameters move together towards slower or faster (their errors are one kernel's error); families
// are independent, except that composites of a model share one draw. The central file is draw 0.
#pragma once
#include <cstdint>

#include "sim/cost/costs.hpp"

namespace rackcast {

CostSpec draw_costs(const CostSpec& central, std::uint64_t seed, int draw);

// The same with one family moved by a factor of its time (1.1: 10% slower); for sensitivity tables. Family "*": all;
// a parameter's name (link_gbs, hbm_gbs): that parameter in every family.
CostSpec scale_costs(const CostSpec& central, const std::string& family, double time_factor);

}  // namespace rackcast
