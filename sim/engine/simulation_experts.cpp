// Expert placement in the run: an engine that stalls for a rearrangement, and the weights' way over the links.
#include <algorithm>

#include "sim/engine/simulation.hpp"

namespace rackcast {

// Slices of every expert, or one rank: nothing to place, but what a batch touches follows from the load.
static ExpertOptions unplaced(ExpertOptions options) {
  const ReplicaChoice choice = options.eplb.replica_choice;
  options.eplb = EplbSpec{};
  options.eplb.replica_choice = choice;
  options.table.clear();
  return options;
}

// Engines whose placement never changes share one state a pool.
void Simulation::add_experts() {
  expert_traffic_.resize(engines_.size());
  outcome_.experts.resize(engines_.size());
  outcome_.eplb_stall_s.assign(engines_.size(), 0);
  if (options_.experts.parts.empty()) return;
  const Popularities popularities = make_popularities(options_.experts, options_.seed);
  std::uint32_t e = 0;
  bool background = false;
  for (const PoolOptions& pool : options_.pools) {
    std::shared_ptr<EngineExperts> shared;
    for (std::uint32_t i = 0; i < pool.engines; ++i, ++e) {
      const std::uint32_t ranks = pool.shape.expert_ranks.value_or(pool.shape.ranks == pool.shape.gpus && pool.shape.ranks > 1 ? pool.shape.ranks : 0);
      if (ranks == 0) continue;
      const std::uint32_t nodes = std::max(1U, ranks / std::max(1U, options_.topology.gpus_per_node));
      if (!shared || !shared->shareable())
        shared = std::make_shared<EngineExperts>(ranks > 1 ? options_.experts : unplaced(options_.experts), popularities, static_cast<int>(ranks),
                                                 static_cast<int>(ranks % nodes == 0 ? nodes : 1), options_.seed * 1000003 + e);
      engines_[e].use_experts(shared);
      outcome_.experts[e] = shared;
      background = background || shared->costs().link_share < 1;
    }
  }
  if (background) topology_.add_throttle(options_.experts.eplb.periodic_async.link_share, network_);
}

// Before an iteration: true while the engine stands still for its experts.
bool Simulation::holds_for_experts(std::uint32_t e) {
  EngineExperts* experts = engines_[e].experts();
  if (!experts || engines_[e].halted()) return false;
  if (experts->due()) {
    experts->start(now_s_);
    expert_traffic_[e].since_s = now_s_;
    queue_.add(now_s_ + experts->stage_host_s(), EventKind::experts_ready, expert_id(e));
  }
  return experts->stalls();
}

// A stage's host work is done: its weights go on their way.
void Simulation::experts_ready(std::uint32_t id) {
  const std::uint32_t e = id & 0xffffU;
  if (id != expert_id(e)) return;
  const EngineExperts& experts = *engines_[e].experts();
  const EplbCosts costs = experts.costs();
  ExpertTraffic& traffic = expert_traffic_[e];
  for (const ExpertMove& move : experts.stage_moves()) {
    const std::uint32_t first = places_[e].first_gpu;
    const auto path = topology_.weight_route(first + move.from, first + move.to, costs.path == EplbPath::host, costs.link_share < 1);
    const double bytes = std::max(1.0, move.experts * experts.stage_expert_bytes());
    ++outcome_.flows;
    if (network_.start(now_s_, path, static_cast<std::uint64_t>(bytes), expert_flow_tag | expert_id(e))) ++traffic.flows;
  }
  if (traffic.flows == 0) expert_stage_done(e);
}

void Simulation::expert_flow_done(std::uint32_t id) {
  const std::uint32_t e = id & 0xffffU;
  if (id != expert_id(e)) return;
  if (--expert_traffic_[e].flows == 0) expert_stage_done(e);
}

// Their engine died.
void Simulation::experts_lost(std::uint32_t e) {
  if (!engines_[e].experts()) return;
  engines_[e].experts()->restart();
  expert_traffic_[e].flows = 0;
  ++expert_traffic_[e].generation;
}

void Simulation::expert_stage_done(std::uint32_t e) {
  EngineExperts& experts = *engines_[e].experts();
  const bool stalled = experts.stalls();
  if (experts.finish_stage(now_s_)) {
    queue_.add(now_s_ + experts.stage_host_s(), EventKind::experts_ready, expert_id(e));
    return;
  }
  if (detailed_) tell_rearranged(e, expert_traffic_[e].since_s, stalled);
  if (!stalled) return;
  outcome_.eplb_stall_s[e] += now_s_ - expert_traffic_[e].since_s;
  wake(e);
}

}  // namespace rackcast
