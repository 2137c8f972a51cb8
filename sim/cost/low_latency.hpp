// Path low_latency: steps of few tokens run fused kernels, larger ones (a long prompt's chunk) the standard path.
#pragma once
#include <memory>

#include "sim/cost/step_model.hpp"

namespace rackcast {

inline constexpr double small_step_tokens = 32;  // most tokens of a fused step, over the engine; assumed: one tile of rows

std::unique_ptr<StepModel> make_two_path_model(std::unique_ptr<StepModel> standard, std::unique_ptr<StepModel> fused);

}  // namespace rackcast
