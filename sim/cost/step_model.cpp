#include "sim/cost/step_model.hpp"

#include "sim/base/error.hpp"
#include "sim/cost/closed_form_step.hpp"
#include "sim/cost/low_latency.hpp"
#include "sim/cost/shapes.hpp"
#include "sim/cost/sustained.hpp"

namespace rackcast {

bool StepContext::fused_experts() const {
  return model.experts.fused && !tensor_parallel && whole_experts() && ranks <= nvlink_domain && costs.has("moe_fused", model.name) &&
         expert_weights(model, gpu) == WeightType::fp4;
}

std::unique_ptr<StepModel> make_step_model(const StepContext& context) {
  RACKCAST_CHECK(context.ranks > 0, "an engine without ranks");
  if (context.sustained_clock) {
    StepContext burst = context;
    burst.sustained_clock = false;
    StepContext sustained = burst;
    sustained.costs = sustained_costs(context.costs, context.gpu);
    return make_two_clock_model(make_step_model(burst), make_step_model(sustained));
  }
  if (context.path == EnginePath::low_latency) {
    StepContext standard = context;
    standard.path = EnginePath::standard;
    return make_two_path_model(make_closed_form_step(standard), make_closed_form_step(context));
  }
  return make_closed_form_step(context);
}

std::unique_ptr<StepModel> make_step_model(const ModelSpec& model, const RackSpec& rack, const EngineSpec& engine,
                                           const DeploymentSpec& deployment, const Catalog& catalog, double link_share) {
  StepContext context;
  context.model = model;
  context.gpu = rack.gpu;
  context.costs = read_costs(catalog, engine.cost.empty() ? rack.gpu.name : engine.cost);
  context.ranks = engine.ranks();
  context.tensor_parallel = engine.tp > 0;
  context.expert_parallel = engine.expert_parallel();
  context.gpus_per_node = rack.gpus_per_node;
  context.nvlink_domain = rack.nvlink_domain;
  context.nic_bandwidth = rack.nic_bandwidth;
  context.redundant_experts = deployment.eplb.redundant_experts;
  context.draft_redundant_experts = deployment.eplb.draft_redundant_experts;
  context.draft_tokens = deployment.speculation.draft_tokens;
  context.kv_format = deployment.kv_cache.format;
  context.engram = deployment.engram;
  context.path = engine.path;
  context.link_share = link_share;
  context.host = deployment.host;
  context.sustained_clock = deployment.clock == ClockMode::sustained;
  return make_step_model(context);
}

}  // namespace rackcast
