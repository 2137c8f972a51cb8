// The mean expert load of one step under a placement policy and a popularity: for `step --eplb` and for checks. The
// engine draws its own loads step by step.
#pragma once
#include "sim/cost/step_model.hpp"
#include "sim/policy/expert_popularity.hpp"

namespace rackcast {

// tokens: of the whole engine. The placement is computed from the true popularity; oracle rearranges for every draw.
ExpertLoad mean_expert_load(const ModelSpec& model, int ranks, EplbPolicy policy, int redundant_experts,
                            const ExpertPopularityOptions& popularity, double tokens, double tokens_per_request,
                            std::uint64_t seed);

}  // namespace rackcast
