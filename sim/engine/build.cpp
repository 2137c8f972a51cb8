#include "sim/engine/build.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "sim/trace/closed_loop.hpp"
#include "sim/trace/mixed_load.hpp"
#include "sim/trace/open_loop.hpp"

namespace rackcast {

namespace {

constexpr double us = 1e-6;  // cost files give times in microseconds

PoolOptions pool_of(const Scenario& s, const BuiltPool& built, EngineRole role) {
  const EngineSpec& spec = built.spec;
  PoolOptions pool;
  pool.engines = static_cast<std::uint32_t>(spec.engines);
  pool.model = built.model.get();
  EngineShape& shape = pool.shape;
  shape.role = role;
  shape.gpus = static_cast<std::uint32_t>(spec.ranks());
  shape.ranks = spec.dep > 0 ? shape.gpus : 1;
  shape.expert_ranks = spec.expert_parallel() ? shape.gpus : 1;
  shape.limits.tokens = static_cast<std::uint32_t>(spec.max_batched_tokens.count);
  shape.limits.requests = static_cast<std::uint32_t>(spec.max_requests_per_rank);
  shape.limits.prompt_tokens = static_cast<std::uint32_t>(spec.prompt_chunk.count);
  shape.limits.answer_iterations = static_cast<std::uint32_t>(spec.answer_iterations);
  shape.kv_tokens = static_cast<std::int64_t>(built.memory.kv_capacity_tokens);
  shape.kv_fixed_tokens = static_cast<std::int64_t>(std::ceil(built.memory.kv_fixed_bytes / built.memory.kv_bytes_per_token));
  shape.kv_left_tokens = static_cast<std::int64_t>(s.deployment.kv_cache.kept_state.value() / built.memory.kv_bytes_per_token);
  shape.retention_interval = s.deployment.kv_cache.retention_interval.count;
  shape.when_full = s.deployment.kv_cache.when_full;
  shape.prefix_cache = s.deployment.kv_cache.prefix_cache;
  shape.posts_behind_launch = s.deployment.kv_transfer.posting == KvPosting::behind_launch;
  shape.adaptive_verify = s.deployment.speculation.verify == VerifyPolicy::adaptive;
  shape.drafts = s.deployment.speculation.draft_tokens > 0;
  // Without an exchange between ranks there is nothing to flow: such an engine is layered.
  shape.flows = s.fidelity == Fidelity::flow && shape.ranks > 1 && s.model.experts.count > 0;
  shape.layers = s.fidelity != Fidelity::collapsed && !shape.flows ? static_cast<std::uint32_t>(s.model.layer_count()) : 0;
  return pool;
}

void add_pools(const Scenario& s, const Catalog& catalog, BuiltRun& run) {
  const auto add = [&](const std::optional<EngineSpec>& spec, const char* name, EngineRole role) {
    if (!spec || spec->engines == 0) return;
    BuiltPool pool;
    pool.name = name;
    pool.spec = *spec;
    pool.memory = plan_memory(s.model, s.rack, *spec, role, s.deployment);
    require_fit(pool.memory, std::string("deployment.") + name);
    pool.model = make_step_model(s.model, s.rack, *spec, s.deployment, catalog);
    for (const std::string& note : pool.memory.notes) run.notes.push_back(std::string(name) + ": " + note);
    run.options.pools.push_back(pool_of(s, pool, role));
    run.pools.push_back(std::move(pool));
  };
  add(s.deployment.aggregated, "aggregated", EngineRole::aggregated);
  add(s.deployment.prefill, "prefill", EngineRole::prefill);
  add(s.deployment.decode, "decode", EngineRole::decode);
  const int drafts = s.deployment.speculation.draft_tokens;
  if (drafts > 0 && !s.model.draft)
    run.notes.push_back(fmt::format("deployment.speculation: {} has no draft model here, so its drafts take no time", s.model.name));
  else if (drafts > 0 && drafts > s.model.draft->max_tokens)
    run.notes.push_back(fmt::format("deployment.speculation: {} drafts at most {} tokens; {} are more than was ever shown", s.model.name, s.model.draft->max_tokens, drafts));
}

TopologyOptions topology_of(const RackSpec& rack) {
  return {.gpus_per_rack = static_cast<std::uint32_t>(rack.gpus),
          .gpus_per_node = static_cast<std::uint32_t>(rack.gpus_per_node),
          .nvlink_domain = static_cast<std::uint32_t>(rack.nvlink_domain),
          .racks = static_cast<std::uint32_t>(rack.racks),
          .nvlink_bytes_per_s = rack.gpu.nvlink_bandwidth.value(),
          .nic_bytes_per_s = rack.nic_bandwidth.value(),
          .host_bytes_per_s = rack.gpu.host_bandwidth.value(),
          .host_memory_bytes_per_s = rack.host_memory_bandwidth.value()};
}

// What the scenario leaves open (-1) comes from the cost file of the prompts' pool.
KvTransferOptions transfer_of(const Scenario& s, const Catalog& catalog) {
  const KvTransferSpec& spec = s.deployment.kv_transfer;
  KvTransferOptions o;
  o.mode = spec.mode;
  const bool pull = spec.mode == KvTransferMode::pull;
  o.posting = spec.posting != KvPosting::automatic ? spec.posting : pull ? KvPosting::step : KvPosting::thread;
  o.pieces = spec.pieces;
  o.first_token = spec.first_token;
  o.block_tokens = static_cast<double>(spec.block.count);
  o.bytes_per_token = s.model.kv_bytes_per_token(s.deployment.kv_cache.format);
  o.fixed_bytes = s.model.kv_fixed_bytes(s.deployment.kv_cache.format, s.deployment.speculation.draft_tokens > 0);
  o.nic_latency_s = s.rack.nic_latency.value();
  o.regions = 0;
  constexpr int most_groups = 8;  // parts of a chunk: more of them change little and cost events
  int writers = 0;
  for (const LayerGroup& group : s.model.layers) {
    if (group.writes_kv && group.attends != Attends::window) writers += group.count;
    if (group.writes_kv && group.attends != Attends::window) o.regions += group.count * (group.index_keys ? 2 : 1);
    if (s.model.attention.window > 0) o.fixed_descriptors += group.count;
    if (group.compressor_state.value() > 0) o.fixed_descriptors += group.count;
  }
  if (spec.packed) o.regions = o.fixed_descriptors = 1;
  o.groups = static_cast<std::uint32_t>(std::clamp(writers, 1, most_groups));
  if (!s.deployment.prefill || !s.deployment.decode) return o;
  const std::string& cost = s.deployment.prefill->cost;
  const CostSpec costs = read_costs(catalog, cost.empty() ? s.rack.gpu.name : cost);
  const auto value = [&](Seconds given, const std::string& parameter) {
    return given.value() >= 0 ? given.value() : costs.get("kv_transfer", parameter, s.model.name).value * us;
  };
  const auto transport = [&](KvTransport kind) {
    static constexpr const char* suffixes[] = {"", "nvlink", "nic", "roce", "unnamed"};
    const std::string of = suffixes[static_cast<int>(kind)];
    const CostParameter* base = costs.find("kv_transfer", "base_" + of + "_us", s.model.name);
    return TransportCost{base ? base->value * us : 0, value(spec.post_per_descriptor, "post_" + of + "_us"),
                         value(spec.execute_per_descriptor, "execute_us")};
  };
  if (const CostRange* range = costs.range("kv_transfer", s.model.name)) o.range = *range;
  const bool automatic = spec.transport == KvTransport::automatic;
  o.control_s = value(spec.control, "control_us");
  o.nvlink = transport(automatic ? KvTransport::cuda_ipc : spec.transport);
  o.nic = transport(automatic ? KvTransport::ib : spec.transport);
  return o;
}

AgentxOptions agentx_of(const WorkloadSpec& w, std::uint64_t seed, const Trace& trace) {
  AgentxOptions o;
  o.trace = &trace;
  o.lanes = static_cast<std::uint32_t>(w.concurrency);
  o.start_min = w.start_min;
  o.start_max = w.start_max;
  o.warmup_requests = static_cast<std::uint32_t>(w.warmup_requests);
  o.tree_idle_cap_s = w.tree_idle_cap.value();
  o.system_idle_cap_s = w.system_idle_cap.value();
  o.think_time = w.think_time;
  o.output_limit = static_cast<std::uint32_t>(w.output_limit);
  o.seed = seed;
  return o;
}

// One load, and what its lanes would ask of an instant server (0: no such bound).
std::unique_ptr<Load> load_of(const WorkloadSpec& w, std::uint64_t seed, TraceCache& traces, BuiltRun& run) {
  const LengthOptions lengths{.input_tokens = static_cast<std::uint32_t>(w.input.count),
                              .output_tokens = static_cast<std::uint32_t>(w.output.count),
                              .range_ratio = w.range_ratio,
                              .output_limit = static_cast<std::uint32_t>(w.output_limit)};
  if (w.kind == WorkloadKind::closed_loop) {
    return make_closed_loop({.users = static_cast<std::uint32_t>(w.concurrency), .lengths = lengths,
                             .turns = static_cast<std::uint32_t>(w.turns), .shared_prefix = w.shared_prefix,
                             .prefix_groups = static_cast<std::uint32_t>(w.prefix_groups),
                             .requests = static_cast<std::uint64_t>(w.requests),
                             .warmup_requests = static_cast<std::uint64_t>(w.warmup_count), .seed = seed});
  }
  if (!uses_trace(w)) {
    return make_open_loop({.rate_per_s = w.rate.value(), .lengths = lengths, .requests = static_cast<std::uint64_t>(w.requests),
                           .warmup_requests = static_cast<std::uint64_t>(w.warmup_count), .seed = seed});
  }
  const std::shared_ptr<const NamedTrace> named = traces.get(w.trace);
  if (!named->note.empty()) run.notes.push_back("workload.trace: " + named->note);
  const std::shared_ptr<const Trace> trace(named, &named->trace);
  run.traces.push_back(trace);
  if (w.kind == WorkloadKind::open_loop) {
    return make_open_loop({.trace = trace.get(), .lengths = lengths, .requests = static_cast<std::uint64_t>(w.requests),
                           .warmup_requests = static_cast<std::uint64_t>(w.warmup_count), .seed = seed});
  }
  AgentxOptions agentx = agentx_of(w, seed, *trace);
  agentx.plans = traces.plans(w.trace);
  run.context.lane_demand_tok_s += traces.lane_demand_tok_s(w.trace, agentx, w.duration.value());
  return make_agentx(agentx);
}

void add_load(const Scenario& s, TraceCache& traces, BuiltRun& run) {
  const std::vector<WorkloadSpec> parts = parts_of(s.workload);
  if (parts.size() == 1) {
    run.load = load_of(parts.front(), s.seed, traces, run);
    return;
  }
  std::vector<std::unique_ptr<Load>> loads;
  loads.reserve(parts.size());
  for (const WorkloadSpec& part : parts) loads.push_back(load_of(part, s.seed, traces, run));
  run.load = make_mixed_load(std::move(loads));
  // Lanes without think time ask without end.
  if (std::ranges::any_of(parts, [](const WorkloadSpec& part) { return part.kind != WorkloadKind::agentx; })) run.context.lane_demand_tok_s = 0;
}

void add_prices(const Scenario& s, BuiltRun& run) {
  const auto priced = s.prices.list.models.find(s.model.name);
  if (priced != s.prices.list.models.end()) {
    const TokenPrice& price = s.prices.period == PricePeriod::peak ? priced->second.peak : priced->second.off_peak;
    run.context.cached_usd = price.cached_input.value();
    run.context.input_usd = price.input.value();
    run.context.output_usd = price.output.value();
  } else {
    run.notes.push_back(s.prices.list.name.empty() ? std::string("prices: no list, so revenue is 0")
                                                   : fmt::format("prices: list '{}' has no price for {}, so revenue is 0", s.prices.list.name, s.model.name));
  }
  const GpuSpec& gpu = s.rack.gpu;
  run.context.gpu_watts = gpu.power.value();
  run.context.gpu_usd_per_s = (s.prices.gpu == GpuPriceKind::owning ? gpu.owning_price : gpu.rental_price).value();
}

}  // namespace

std::shared_ptr<const NamedTrace> TraceCache::get(const std::string& name) {
  std::shared_ptr<const NamedTrace>& trace = traces_[name];
  if (!trace) trace = std::make_shared<const NamedTrace>(open_trace(name));
  return trace;
}

std::shared_ptr<const SessionPlans> TraceCache::plans(const std::string& name) {
  std::shared_ptr<const SessionPlans>& plans = plans_[name];
  if (!plans) plans = session_plans(get(name)->trace);
  return plans;
}

double TraceCache::lane_demand_tok_s(const std::string& name, const AgentxOptions& o, double duration_s) {
  const std::string key = fmt::format("{} {} {} {} {} {} {} {} {} {} {}", name, duration_s, o.lanes, o.start_min, o.start_max, o.warmup_requests,
                                      o.tree_idle_cap_s, o.system_idle_cap_s, o.think_time, o.output_limit, o.seed);
  const auto known = demands_.find(key);
  if (known != demands_.end()) return known->second;
  return demands_[key] = lane_demand(o, duration_s).tokens_per_s;
}

void TraceCache::prepare(const Scenario& scenario) {
  for (const WorkloadSpec& w : parts_of(scenario.workload)) {
    if (!uses_trace(w)) continue;
    const std::shared_ptr<const NamedTrace> named = get(w.trace);
    if (w.kind != WorkloadKind::agentx) continue;
    AgentxOptions options = agentx_of(w, scenario.seed, named->trace);
    options.plans = plans(w.trace);
    lane_demand_tok_s(w.trace, options, w.duration.value());
  }
}

bool uses_trace(const WorkloadSpec& w) {
  return w.kind == WorkloadKind::agentx || (w.kind == WorkloadKind::open_loop && w.arrivals == ArrivalKind::recorded);
}

std::string trace_path(const std::string& name) {
  if (name.starts_with("generated-v1.0")) return {};
  if (name != "kv-cache-tester") return name;
  const char* data = std::getenv("RACKCAST_DATA");
  const std::string path = data ? std::string(data) + "/traces/kv-cache-tester/weka_rle.jsonl.gz" : std::string();
  return data && std::filesystem::exists(path) ? path : std::string();
}

// All but the load.
static BuiltRun build_deployment(const Scenario& s, const Catalog& catalog) {
  BuiltRun run;
  add_pools(s, catalog, run);
  SimulationOptions& o = run.options;
  o.topology = topology_of(s.rack);
  o.router = s.deployment.router.policy;
  o.router_options = {.balance = s.deployment.router.balance, .load_limit = s.deployment.router.load_limit};
  o.admission = s.deployment.router.admission;
  const SpeculationSpec& speculation = s.deployment.speculation;
  o.acceptance = Acceptance(speculation.draft_tokens, speculation.acceptance_length, speculation.acceptance);
  o.transfer = transfer_of(s, catalog);
  const KvCacheSpec& cache = s.deployment.kv_cache;
  const Bytes tier = cache.host_tier_per_node.value() < 0 ? s.rack.host_tier_per_node : cache.host_tier_per_node;
  o.host_tier_tokens_per_node = cache.prefix_cache ? static_cast<std::int64_t>(tier.value() / o.transfer.bytes_per_token) : 0;
  o.duration_s = s.workload.requests > 0 ? never_s : s.workload.duration.value();
  o.grace_s = s.workload.grace.value();
  o.preload = s.workload.warmup == WarmupMode::preload;
  o.seed = s.seed;
  add_failures(s, catalog, run);
  run.context.gpus = s.deployment.gpus();
  run.context.rack_gpus = static_cast<double>(s.rack.gpus) * s.rack.racks;
  run.context.racks = s.rack.racks;
  add_expert_options(s, run);
  return run;
}

void check_run(const Scenario& s, const Catalog& catalog) {
  const BuiltRun run = build_deployment(s, catalog);
  std::vector<std::uint32_t> engines, gpus;
  for (const PoolOptions& pool : run.options.pools) {
    engines.push_back(pool.engines);
    gpus.push_back(pool.shape.gpus);
  }
  place_engines(run.options.topology, engines, gpus);
  for (const WorkloadSpec& part : parts_of(s.workload))
    if (const std::string path = uses_trace(part) ? trace_path(part.trace) : std::string(); !path.empty() && !std::filesystem::exists(path))
      throw UserError(path + ": there is no such trace");
}

BuiltRun build_run(const Scenario& s, const Catalog& catalog, TraceCache* traces) {
  TraceCache own;
  BuiltRun run = build_deployment(s, catalog);
  add_load(s, traces ? *traces : own, run);
  run.context.lanes = run.load->lanes();
  add_prices(s, run);
  return run;
}

}  // namespace rackcast
