#include "sim/spec/scenario.hpp"

#include <fmt/format.h>

namespace rackcast {

// What no single mapping can know: pools against the rack, the workload against the pools.
static void cross_rules(Visitor& v, const Scenario& s) {
  const int needed = s.deployment.gpus(), available = s.rack.gpus * s.rack.racks;
  v.rule("deployment", needed <= available,
         needed <= available ? "must fit on the GPUs of the racks"
                             : fmt::format("needs {} GPUs, but {} x {} has {}", needed, s.rack.racks, s.rack.name, available));
  for (const auto& [name, pool] : {std::pair{"prefill", s.deployment.prefill}, {"decode", s.deployment.decode}, {"aggregated", s.deployment.aggregated}}) {
    if (!pool) continue;
    const int ranks = pool->ranks(), domain = s.rack.nvlink_domain;
    v.rule("deployment", ranks <= domain || (pool->tp == 0 && ranks % domain == 0),
           fmt::format("{}: an engine of {} ranks neither fits one NVLink domain of {} GPUs nor {}", name, ranks, domain,
                       pool->tp > 0 ? "may tensor parallelism leave it" : "fills whole ones"));
    v.rule("deployment", pool->tp > 0 || pool->expert_parallel() || ranks <= domain || s.model.experts.count == 0,
           fmt::format("{}: experts: tensor_parallel with dep: {} needs all its ranks in one NVLink domain of {} GPUs", name, ranks, domain));
  }
  for (std::size_t i = 0; i < s.failures.events.size(); ++i) {
    const FailureSpec& f = s.failures.events[i];
    const std::string where = fmt::format("failures.events[{}]", i);
    const std::optional<EngineSpec>& pool = f.pool == FailurePool::prefill ? s.deployment.prefill
                                            : f.pool == FailurePool::decode ? s.deployment.decode : s.deployment.aggregated;
    v.rule("failures", pool.has_value(), where + ": there is no such pool");
    if (!pool) continue;
    v.rule("failures", f.engine < pool->engines, where + fmt::format(": the pool has engines 0 to {}", pool->engines - 1));
    v.rule("failures", f.gpu < pool->ranks(), where + fmt::format(": an engine has GPUs 0 to {}", pool->ranks() - 1));
  }
  v.rule("fidelity", s.fidelity != Fidelity::flow || s.failures.events.empty(), "flow knows no failures; use collapsed or layered, or drop them");
  v.rule("deployment", s.deployment.router.admission.over_limit == OverLimit::wait || s.workload.kind == WorkloadKind::open_loop,
         "router.admission.over_limit: refuse is for workload.kind open_loop: closed loops would ask again at once");
  for (const WorkloadSpec& w : parts_of(s.workload)) {
    const bool fixed = w.kind == WorkloadKind::closed_loop || (w.kind == WorkloadKind::open_loop && w.arrivals == ArrivalKind::poisson);
    v.rule("workload", !fixed || w.input <= s.model.max_context, fmt::format("input must be within the model's context of {}", s.model.max_context.count));
  }
  const bool prefill_alone = s.deployment.prefill && !s.deployment.decode;
  v.rule("workload", !prefill_alone || s.workload.output_limit == 1,
         "prefill engines alone give one token a request: set workload.output_limit to 1, or add decode engines");
  v.rule("workload", !s.deployment.decode || s.workload.output_limit != 1,
         "with output_limit 1 the decode engines would never work: drop deployment.decode");
  v.rule("deployment", s.deployment.kv_cache.host_tier_per_node <= s.rack.host_memory_per_node,
         "kv_cache.host_tier must fit in the rack's host_memory_per_node");
}

void fields(Visitor& v, Scenario& s) {
  v.field("name", s.name, "shown in results").required();
  v.reference("rack", s.rack, "racks", "the hardware").required();
  v.reference("model", s.model, "models", "what is served").required();
  v.group("deployment", s.deployment, "engines and policies").required();
  v.group("workload", s.workload, "the load");
  v.group("failures", s.failures, "what goes wrong meanwhile");
  v.group("prices", s.prices, "what tokens and GPU-hours cost");
  v.choice("network", s.network, network_kinds, "who computes how long data movements take");
  v.choice("fidelity", s.fidelity, fidelities, "how finely an engine step is simulated");
  v.field("uncertainty", s.uncertainty, "parameter sets drawn for the bands; 0: central values only")
      .require(s.uncertainty >= 0 && s.uncertainty <= 1000, "must be 0 to 1000");
  v.field("seed", s.seed, "of every random choice");
  if (v.reading() && v.clean()) cross_rules(v, s);
}

Scenario read_scenario(const YamlSource& source, const Catalog& catalog, const std::vector<std::string>& sets) {
  return read_yaml_as<Scenario>(source, catalog.read_options(sets, "."));
}
Scenario read_scenario(const std::string& path, const Catalog& catalog, const std::vector<std::string>& sets) {
  return read_scenario(read_source(path), catalog, sets);
}

}  // namespace rackcast
