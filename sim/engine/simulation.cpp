// The clock. What happens to a request on its way is in simulation_flow.cpp.
#include "sim/engine/simulation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace rackcast {

namespace {

constexpr std::uint64_t progress_every = 1 << 14;  // events
#ifdef RACKCAST_CHECKS
constexpr std::uint64_t check_every = 1 << 12;     // events
#endif

}  // namespace

Simulation::Simulation(const SimulationOptions& options, Load& load, Network& network, RunObserver& observer)
    : options_(options), load_(load), network_(network), observer_(observer), topology_(options.topology, network),
      transfer_(options.transfer, topology_.gpus()), router_(make_router(options.router, options.router_options)) {
  std::vector<std::uint32_t> counts, gpus;
  for (const PoolOptions& pool : options.pools) {
    counts.push_back(pool.engines);
    gpus.push_back(pool.shape.gpus);
  }
  const auto placed = place_engines(options.topology, counts, gpus);
  for (std::size_t p = 0; p < options.pools.size(); ++p) {
    const PoolOptions& pool = options.pools[p];
    RACKCAST_CHECK((pool.shape.role == EngineRole::decode) == (p > 0), "pools must be prompt engines, then decode engines");
    for (std::uint32_t e = 0; e < pool.engines; ++e) {
      const auto index = static_cast<std::uint32_t>(engines_.size());
      engines_.emplace_back(index, pool.shape, *pool.model, options_.acceptance, options.seed, arena_, static_cast<EngineEvents&>(*this));
      engines_.back().expert_load = pool.expert_load;
      places_.push_back(placed[p][e]);
      outcome_.engine_rack.push_back(placed[p][e].rack);
      outcome_.engine_first_gpu.push_back(placed[p][e].first_gpu);
      auto& list = p == 0 ? targets_ : decode_targets_;
      first_rank_.push_back(static_cast<std::uint32_t>(all_ranks_.size()));
      for (std::uint32_t r = 0; r < pool.shape.ranks; ++r) {
        list.push_back({index, r});
        all_ranks_.push_back({index, r});
      }
    }
  }
  prompt_engines_ = options.pools.front().engines;
  add_experts();
  target_loads_.resize(targets_.size());
  decode_loads_.resize(decode_targets_.size());
  decode_of_rack_.assign(options.topology.racks, {0, 0});
  std::size_t at = 0, decode_at = 0;
  for (ServingEngine& engine : engines_) {
    const std::size_t ranks = engine.shape().ranks;
    if (engine.index() < prompt_engines_) {
      engine.use_loads({&target_loads_[at], ranks}, {});
      at += ranks;
    } else {
      engine.use_loads({}, {&decode_loads_[decode_at], ranks});
      auto& range = decode_of_rack_[places_[engine.index()].rack];
      if (range.second == 0) range.first = decode_at;
      range.second = decode_at += ranks;
    }
  }
  if (options.host_tier_tokens_per_node > 0)
    host_tiers_.assign(topology_.nodes(), KvCache(options.host_tier_tokens_per_node));
  if (!host_tiers_.empty()) group_targets();
  is_awake_.assign(engines_.size(), 0);
  down_.assign(engines_.size(), 0);
  gone_.assign(engines_.size(), 0);
  RACKCAST_CHECK(engines_.size() < 0x10000U, "too many engines for an event's id");
  // A flow's end may be reported from inside a call that starts another one, so it is only noted here.
  network_.on_done = [this](std::uint64_t tag, bool ok, double) {
    (ok ? landed_ : failed_).push_back(tag);
  };
}

// Ranks of an engine in one node: they find each other's prompts in host memory.
void Simulation::group_targets() {
  const auto tier = [&](std::size_t t) { return host_tier_of(targets_[t].engine, targets_[t].rank); };
  for (std::size_t t = 0; t < targets_.size(); ++t) {
    const auto shares = [&](std::size_t other) { return targets_[other].engine == targets_[t].engine && tier(other) == tier(t); };
    TargetLoad& target = target_loads_[t];
    target.group_begin = target.group_end = static_cast<std::uint32_t>(t);
    while (target.group_begin > 0 && shares(target.group_begin - 1)) --target.group_begin;
    while (target.group_end < targets_.size() && shares(target.group_end)) ++target.group_end;
  }
}

SimulationOutcome Simulation::run() {
  detailed_ = observer_.wants_details();
  step_start_s_.assign(engines_.size(), 0);
  outcome_.links = topology_.links();
  observer_.started(layout());
  if (options_.preload) preload();
  if (options_.sample_interval_s > 0) queue_.add(now_s_ + options_.sample_interval_s, EventKind::sample, 0);
  load_next_s_ = load_.next_time_s();
  double limit_s = never_s;
  for (;;) {
    const bool now = !landed_.empty() || !failed_.empty() || decode_room_changed_;  // something is left to do in this instant
    const double next_s = now ? now_s_ : std::min({queue_.next_time_s(), network_.next_time_s(), load_next_s_});
    if (window_closed_) limit_s = outcome_.window_end_s + options_.grace_s;
    const bool empty = arena_.live() == 0;
    if (empty && (window_closed_ || load_.exhausted())) break;
    if (next_s > limit_s) break;
    if (next_s == never_s) {
      throw BoundMissed(fmt::format("deadlock at {:.3f} s: {} requests wait for ever and nothing is under way", now_s_, arena_.live()));
    }
    RACKCAST_CHECK(next_s >= now_s_ - network_resolution_s, "an event lies before its cause");
    now_s_ = std::max(now_s_, next_s);
    advance();
    ++outcome_.events;
    if (outcome_.events % progress_every == 0 && window_open_ && std::isfinite(options_.duration_s))
      observer_.progress((now_s_ - outcome_.window_start_s) / options_.duration_s);
#ifdef RACKCAST_CHECKS
    if (outcome_.events % check_every == 0) check();
#endif
  }
  if (!window_closed_) close_window();
  if (detailed_) tell_unfinished();
  check();
  outcome_.end_s = now_s_;
  outcome_.unfinished_measured = outcome_.arrivals_measured - outcome_.finished_measured - outcome_.lost_measured;
  for (const ServingEngine& engine : engines_) {
    outcome_.engine_total.push_back(engine.totals());
    outcome_.engine_outside.push_back(engine.outside());
    outcome_.iterations += engine.totals().iterations;
    outcome_.preemptions += engine.totals().preemptions;
    for (std::uint32_t r = 0; r < engine.shape().ranks; ++r) outcome_.evicted_tokens += engine.kv(r).evicted_tokens();
  }
  for (const KvCache& tier : host_tiers_) {
    outcome_.host_tier_used_tokens += tier.used_tokens();
    outcome_.host_tier_capacity_tokens += tier.capacity_tokens();
  }
  return outcome_;
}

// Everything that happens at now_s_, in phases.
void Simulation::advance() {
  while (queue_.next_time_s() <= now_s_) handle(queue_.take());
  while (network_.next_time_s() <= now_s_) network_.fire();
  for (std::size_t i = 0; i < landed_.size(); ++i) {
    const auto id = static_cast<std::uint32_t>(landed_[i]);
    if (landed_[i] & (dispatch_tag | combine_tag)) message_landed(landed_[i]);
    else if (landed_[i] & expert_flow_tag) expert_flow_done(id);
    else flow_done(id);
  }
  landed_.clear();
  for (std::size_t i = 0; i < failed_.size(); ++i) {  // weights whose link fails come from elsewhere, at no cost
    const auto id = static_cast<std::uint32_t>(failed_[i]);
    failed_[i] & expert_flow_tag ? expert_flow_done(id) : flow_stopped(id);
  }
  failed_.clear();
  arrivals();
  open_door();
  schedule();
}

void Simulation::handle(const Event& event) {
  switch (event.kind()) {
    case EventKind::rank_ready: rank_ready(event.id); break;
    case EventKind::iteration_done:
    case EventKind::layer_done: iteration_event(event); break;
    case EventKind::failure: fail(event.id); break;
    case EventKind::failure_noticed: failure_noticed(event.id); break;
    case EventKind::failure_over: failure_over(event.id); break;
    case EventKind::transfer_ready: transfer_ready(event.id); break;
    case EventKind::transfer_posted: transfer_posted(event.id); break;
    case EventKind::transfer_done: transfer_done(event.id); break;
    case EventKind::experts_ready: experts_ready(event.id); break;
    case EventKind::window_end: close_window(); break;
    case EventKind::sample: sample(); break;
  }
}

// The engine's index is in the lower half of the id, its generation in the upper one.
void Simulation::iteration_event(const Event& event) {
  const std::uint32_t e = event.id & 0xffffU;
  ServingEngine& engine = engines_[e];
  if (engine.generation() != event.id >> 16) return;  // it was cut off
  double duration_s = 0;
  if (event.kind() == EventKind::layer_done && engine.next_layer(duration_s)) return queue_.add(now_s_ + duration_s, EventKind::layer_done, event.id);
  if (detailed_) tell_step(e);
  engine.end(now_s_);
  wake(e);
}

void Simulation::arrivals() {
  if (!window_open_ && load_.phase() == LoadPhase::measured) open_window();
  if (window_closed_) return;
  // Handing out one request can make others due (a refused one ends at once), so ask again until nothing is.
  while (load_next_s_ <= now_s_) {
    load_next_s_ = load_.next_time_s();
    if (load_next_s_ > now_s_) return;
    due_.clear();
    load_.take_due(now_s_, due_);
    for (const LoadRequest& ask : due_) arrive(ask);
  }
}

void Simulation::schedule() {
  if (decode_room_changed_) start_hand_overs();
  for (std::size_t i = 0; i < awake_.size(); ++i) {  // a preemption may wake others meanwhile
    const std::uint32_t e = awake_[i];
    is_awake_[e] = 0;
    double duration_s = 0;
    if (!engines_[e].idle() || holds_for_experts(e) || !engines_[e].begin(now_s_, duration_s)) continue;
    if (detailed_) step_start_s_[e] = now_s_;
    for (const ServingEngine::Posted& posted : engines_[e].posted())
      queue_.add(now_s_ + posted.after_s + (stale(moves_[posted.move]) ? 0 : link_of(moves_[posted.move].request).latency_s), EventKind::transfer_posted, posted.move);
    if (options_.transfer.mode == KvTransferMode::push_layerwise && engines_[e].shape().role == EngineRole::prefill)
      send_layers(engines_[e], engines_[e].iteration_s());
    if (engines_[e].flowing()) exchange(e);
    else queue_.add(now_s_ + duration_s, engines_[e].shape().layers > 0 ? EventKind::layer_done : EventKind::iteration_done, e | engines_[e].generation() << 16);
  }
  awake_.clear();
}

void Simulation::wake(std::uint32_t engine) {
  if (is_awake_[engine]) return;
  is_awake_[engine] = 1;
  awake_.push_back(engine);
}

void Simulation::open_window() {
  window_open_ = true;
  outcome_.window_start_s = in_flight_since_s_ = now_s_;
  for (const ServingEngine& engine : engines_) window_start_totals_.push_back(engine.totals_at(now_s_));
  window_start_bytes_ = link_bytes();
  observer_.window_opened(now_s_);
  if (std::isfinite(options_.duration_s)) queue_.add(now_s_ + options_.duration_s, EventKind::window_end, 0);
  schedule_failures();
}

void Simulation::close_window() {
  if (!window_open_) open_window();
  count_in_flight(0);
  window_closed_ = true;
  outcome_.window_end_s = now_s_;
  for (std::size_t e = 0; e < engines_.size(); ++e) {
    EngineTotals window = engines_[e].totals_at(now_s_).minus(window_start_totals_[e]);
    window.busy_s = std::max(0.0, window.busy_s);  // an iteration that had just begun was taken back up to rounding
    outcome_.engine_window.push_back(window);
  }
  outcome_.link_bytes = link_bytes();
  for (std::size_t i = 0; i < outcome_.link_bytes.size(); ++i) outcome_.link_bytes[i] -= window_start_bytes_[i];
  load_.stop();
  load_next_s_ = never_s;
}

void Simulation::count_in_flight(int change) {
  if (window_open_ && !window_closed_) {
    outcome_.in_flight_area += static_cast<double>(in_flight_measured_) * (now_s_ - in_flight_since_s_);
    in_flight_since_s_ = now_s_;
  }
  in_flight_measured_ += static_cast<std::uint64_t>(static_cast<std::int64_t>(change));
}

void Simulation::check() const {
  const std::uint64_t live = arena_.live();
  RACKCAST_CHECK(outcome_.arrivals == outcome_.refused + outcome_.turned_away + outcome_.lost + finished_ + live, "requests got lost");
  RACKCAST_CHECK(!options_.admission.limits() || live == inside_ + at_door_.count, "the door lost count");
  double in = 0, out = 0;
  for (const ServingEngine& engine : engines_) {
    engine.check();
    if (engine.experts()) engine.experts()->check();
    in += engine.totals().prefill_tokens;
    out += engine.totals().kept_tokens;
  }
  RACKCAST_CHECK(live > 0 || in == computed_tokens_, "prompt tokens got lost");
  RACKCAST_CHECK(live > 0 || out == answered_tokens_, "answer tokens got lost");
  if (live > 0) return;
  for (const ServingEngine& engine : engines_)
    for (std::uint32_t r = 0; r < engine.shape().ranks; ++r)
      RACKCAST_CHECK(engine.kv(r).pinned_tokens() <= engine.grown_reserved(r),
                     fmt::format("KV space got lost: engine {} rank {} holds {} tokens, {} of them private", engine.index(), r,
                                 engine.kv(r).pinned_tokens(), engine.kv(r).private_tokens()));
  for (const TargetLoad& target : target_loads_)
    RACKCAST_CHECK(target.requests == 0 && std::abs(target.queued_tokens) < 0.5, "the router's view is off");
}

}  // namespace rackcast
