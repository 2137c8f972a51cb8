// The expert load of a typical step under a placement policy and a popularity: for `step --eplb` and for checks. The
// engine keeps placements and popularity as state that moves (sim/engine/engine_experts).
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "sim/cost/step_model.hpp"
#include "sim/policy/eplb_policy.hpp"
#include "sim/policy/expert_demand.hpp"

namespace rackcast {

// Layers drawn with exactly the tokens asked for, many at once, so that their mean is steady. The placement is computed
// from the true popularity; an oracle's from every draw.
class DrawnExperts final : public DemandSource {
 public:
  static constexpr int layers = 16, draws_per_layer = 4;

  DrawnExperts(std::unique_ptr<EplbPlanner> planner, int top_k, ReplicaChoice choice, const ExpertPopularityOptions& popularity,
               double tokens_per_request, std::uint64_t seed);
  const StepDemand& at(double tokens) override;

 private:
  std::unique_ptr<EplbPlanner> planner_;
  ReplicaChoice choice_;
  double tokens_per_request_;
  ExpertPopularity popularity_;
  std::vector<ExpertPlacement> placements_;
  std::uint64_t seed_;
  std::map<double, StepDemand> drawn_;
};

// Main model and draft of one engine. Borrowed by the load it gives.
class TypicalExperts {
 public:
  TypicalExperts(const StepContext& context, const EplbSpec& eplb, const ExpertPopularityOptions& popularity,
                 double tokens_per_request, std::uint64_t seed, std::vector<ExpertPlacement> table = {});
  ExpertLoad load() { return {.main = main_.get(), .draft = draft_.get()}; }

 private:
  std::unique_ptr<DrawnExperts> main_, draft_;
};

}  // namespace rackcast
