// What observers are told: the layout, samples, and for those that want details steps, movements and failures.
#include "sim/engine/simulation.hpp"

#include <fmt/core.h>

namespace rackcast {

RunLayout Simulation::layout() const {
  RunLayout layout;
  for (const ServingEngine& engine : engines_) {
    const EngineShape& shape = engine.shape();
    layout.engines.push_back({.ranks = shape.ranks, .gpus = shape.gpus, .first_gpu = places_[engine.index()].first_gpu,
                              .prompts = shape.role != EngineRole::decode, .answers = shape.role != EngineRole::prefill,
                              .kv_tokens = shape.kv_tokens >= KvCache::unlimited ? 0 : shape.kv_tokens * shape.ranks,
                              .experts = engine.experts() != nullptr});
  }
  layout.links = topology_.links();
  layout.gpus = topology_.gpus();
  layout.gpus_per_node = options_.topology.gpus_per_node;
  return layout;
}

std::vector<double> Simulation::link_bytes() const {
  std::vector<double> bytes;
  bytes.reserve(topology_.links().size());
  for (const TopologyLink& link : topology_.links()) bytes.push_back(network_.bytes_carried(link.id));
  return bytes;
}

void Simulation::sample() {
  RunSample& sample = sample_;
  sample.time_s = now_s_;
  sample.engines.assign(engines_.size(), {});
  sample.asked_tokens = sample.hit_gpu_tokens = sample.hit_host_tokens = 0;
  for (std::size_t e = 0; e < engines_.size(); ++e) {
    const ServingEngine& engine = engines_[e];
    EngineSample& look = sample.engines[e];
    look.busy_s = engine.busy_s(now_s_);
    if (engine.experts()) {
      look.rank_expert_load = engine.experts()->rank_loads();
      look.experts_moved = engine.experts()->experts_arrived();
    }
    for (std::uint32_t r = 0; r < engine.shape().ranks; ++r) {
      look.waiting += engine.waiting(r);
      look.running += engine.running(r);
      look.kv_pinned_tokens += engine.kv(r).pinned_tokens();
      look.kv_used_tokens += engine.kv(r).used_tokens();
      look.rank_running.push_back(engine.running(r));
      look.rank_kv_used_tokens.push_back(engine.kv(r).used_tokens());
    }
    sample.asked_tokens += engine.totals().asked_tokens;
    sample.hit_gpu_tokens += engine.totals().hit_gpu_tokens;
    sample.hit_host_tokens += engine.totals().hit_host_tokens;
  }
  sample.link_bytes = link_bytes();
  observer_.sampled(sample);
  if (!window_closed_) queue_.add(now_s_ + options_.sample_interval_s, EventKind::sample, 0);
}

void Simulation::tell_step(std::uint32_t e) {
  const ServingEngine& engine = engines_[e];
  StepEvent step{.engine = e, .start_s = step_start_s_[e], .end_s = now_s_};
  for (const RankBatch& batch : engine.batch()) {
    step.prefill_tokens += batch.prefill_tokens;
    step.prefill_requests += batch.prefill_requests;
    step.decode_requests += batch.decode_requests;
    step.decode_context += batch.decode_context;
  }
  for (std::uint32_t r = 0; r < engine.shape().ranks; ++r) {
    step.waiting += engine.waiting(r);
    step.running += engine.running(r);
  }
  observer_.stepped(step);
}

// Requests that the run's end cut off.
void Simulation::tell_unfinished() {
  for (RequestId id = 0; id < arena_.capacity(); ++id)
    if (arena_[id].alive) observer_.unfinished(arena_[id], now_s_);
}

// A rearrangement that has ended; since_s: when it was planned.
void Simulation::tell_rearranged(std::uint32_t e, double since_s, bool stalled) {
  const EngineExperts& experts = *engines_[e].experts();
  double moved = 0;
  for (std::size_t p = 0; p < experts.options().size(); ++p) moved += experts.totals(p).moved_experts;
  const std::string detail = fmt::format("{:.0f} experts moved so far", moved);
  observer_.noted({.engine = e, .start_s = since_s, .end_s = now_s_,
                   .name = stalled ? "experts rearranged, decoding stopped" : "experts rearranged in the background", .detail = detail});
}

void Simulation::tell_moved(const Move& move) {
  const Request& request = arena_[move.request];
  MovementEvent movement{.request = request.ask.id, .start_s = move.start_s, .end_s = now_s_, .bytes = move.bytes};
  movement.from_gpu = movement.to_gpu = gpu_of(request.prefill_engine, request.prefill_rank, move.request);
  if (move.kind == MoveKind::host_load) movement.kind = MovementKind::host_load;
  else movement.to_gpu = gpu_of(request.decode_engine, request.decode_rank, move.request);
  observer_.moved(movement);
}

void Simulation::tell_failure(const FailureRecord& failure, bool over) {
  static constexpr std::string_view names[] = {"engine", "GPU", "straggler", "network card", "NVLink"};
  const std::string name = std::string(names[static_cast<std::size_t>(failure.kind)]) + (over ? ": over" : ": failure");
  const std::string detail = "GPU " + std::to_string(places_[failure.engine].first_gpu + failure.gpu);
  observer_.noted({.engine = failure.engine, .start_s = now_s_, .end_s = now_s_, .name = name, .detail = detail});
}

}  // namespace rackcast
