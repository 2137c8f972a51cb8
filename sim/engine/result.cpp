#include "sim/engine/result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <cmath>

#include "sim/base/schema_yaml.hpp"
#include "sim/engine/result_range.hpp"

namespace rackcast {

namespace {

using Json = nlohmann::ordered_json;

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

Json basis_json(const BasisShare& b, double whole) {
  return {{"measured", share(b.measured, whole)}, {"published", share(b.published, whole)},
          {"transferred", share(b.transferred, whole)}, {"assumed", share(b.assumed, whole)}};
}

EngineTotals sum_of(const std::vector<EngineTotals>& engines, std::size_t begin, std::size_t end) {
  EngineTotals none, sum;
  for (std::size_t e = begin; e < end; ++e) {  // a - (0 - b) = a + b keeps one list of members, in EngineTotals::minus
    sum = sum.minus(none.minus(engines[e]));
  }
  return sum;
}

Json groups_json(const StepTime& t, double count) {
  return {{"total_s", share(t.total_s, count)}, {"attention_s", share(t.attention_s, count)}, {"moe_s", share(t.moe_s, count)},
          {"other_s", share(t.other_s, count)}, {"head_s", share(t.head_s, count)}, {"draft_s", share(t.draft_s, count)},
          {"host_s", share(t.host_s, count)}};
}

// The mean batch of the window's iterations, on every rank alike: what an average step of the pool looks like.
std::vector<RankBatch> mean_batch(const EngineTotals& t, const EngineShape& shape, double query_tokens) {
  RankBatch b;
  const double ranks = shape.ranks, steps = t.decode_iterations * ranks, iterations = static_cast<double>(t.iterations) * ranks;
  if (steps > 0) {
    b.decode_requests = t.decode_requests / steps;
    if (t.verified_tokens > 0) query_tokens = t.verified_tokens / t.decode_requests;
    b.decode_tokens = b.decode_requests * query_tokens;
    b.decode_context = t.decode_context / steps;
    b.decode_query_context = query_tokens * b.decode_context;
    b.draft_requests = shape.drafts ? b.decode_requests : 0;
  }
  if (t.prefill_tokens > 0 && iterations > 0) {
    b.prefill_tokens = t.prefill_tokens / iterations;
    b.prefill_requests = t.prefill_chunks / iterations;
    b.prefill_context = t.prefill_context / iterations;
    b.prefill_query_context = t.prefill_query_context / iterations;
    b.prefill_tail_tokens = t.prefill_tail_tokens / iterations;
    b.prefill_tail_query_context = t.prefill_tail_query_context / iterations;
  }
  return std::vector<RankBatch>(shape.ranks, b);
}

// What uneven experts did to the engines of a pool. Engines may share one state.
Json experts_json(const SimulationOutcome& o, std::size_t begin, std::size_t end) {
  std::vector<const EngineExperts*> states;
  double stall_s = 0, slowdown_s = 0, busy_s = 0;
  for (std::size_t e = begin; e < end; ++e) {
    const EngineExperts* state = o.experts[e].get();
    if (state && std::find(states.begin(), states.end(), state) == states.end()) states.push_back(state);
    stall_s += o.eplb_stall_s[e];
    slowdown_s += o.engine_total[e].eplb_slowdown_s;
    busy_s += o.engine_total[e].busy_s;
  }
  Json j;
  if (states.empty()) return j;
  for (std::size_t part = 0; part < states.front()->options().size(); ++part) {
    ExpertPartTotals t;
    for (const EngineExperts* state : states) {
      const ExpertPartTotals& one = state->totals(part);
      t.steps += one.steps;
      t.demand = {t.demand.rows + one.demand.rows, t.demand.touched + one.demand.touched, t.demand.ingress + one.demand.ingress};
      t.rearrangements += one.rearrangements;
      t.rearranging_s += one.rearranging_s;
      t.moved_bytes += one.moved_bytes;
      t.moved_experts += one.moved_experts;
      t.imbalance_before += one.imbalance_before;
      t.imbalance_after += one.imbalance_after;
    }
    Json p;
    if (t.steps > 0)
      p["slowest_rank_over_balanced"] = {{"rows", t.demand.rows / t.steps}, {"touched_experts", t.demand.touched / t.steps}, {"ingress", t.demand.ingress / t.steps}};
    const double n = static_cast<double>(t.rearrangements);
    p["rearrangements"] = t.rearrangements;
    if (n > 0) {
      p["mean_rearrangement_s"] = t.rearranging_s / n;
      p["mean_moved_bytes"] = t.moved_bytes / n;
      p["mean_moved_experts"] = t.moved_experts / n;
      p["imbalance_before"] = t.imbalance_before / n;
      p["imbalance_after"] = t.imbalance_after / n;
    }
    j[states.front()->options()[part].name] = p;
  }
  j["stall_s"] = stall_s;
  j["slowdown_s"] = slowdown_s;
  j["slowdown_share"] = share(slowdown_s, busy_s);
  return j;
}

Json operators_json(const StepModel& model, const std::vector<RankBatch>& batch, double divide_by, EngineExperts* experts) {
  Json parts = Json::array();
  for (const OperatorCost& op : model.operators(batch, experts ? experts->peek() : ExpertLoad{}))
    parts.push_back({{"name", op.title()}, {"group", op.group}, {"basis", basis_names[static_cast<int>(op.basis)]}, {"time_s", share(op.time_s, divide_by)}});
  return parts;
}

Json pool_json(const BuiltPool& pool, const PoolOptions& options, const EngineTotals& t, const EngineTotals& whole_run,
               double window_s, double query_tokens, EngineExperts* experts) {
  const double ranks = options.shape.ranks, steps = t.decode_iterations;
  Json j;
  j["name"] = pool.name;
  j["engines"] = options.engines;
  j["gpus"] = options.engines * options.shape.gpus;
  j["utilisation"] = share(t.busy_s, window_s * options.engines);
  j["iterations"] = t.iterations;
  j["mean_iteration"] = groups_json(t.parts, static_cast<double>(t.iterations));
  j["basis"] = basis_json(whole_run.basis, whole_run.basis_sampled_s);
  if (whole_run.layered_collapsed_s > 0)
    j["layered"] = {{"layers", options.shape.layers}, {"jitter", LayeredStep::jitter},
                    {"expected_over_collapsed", share(whole_run.layered_expected_s, whole_run.layered_collapsed_s)}};
  if (t.prefill_tokens > 0) {
    j["computed_input_tok_s_gpu"] = share(t.prefill_tokens, window_s * options.engines * options.shape.gpus);
    j["busy_s_per_computed_token"] = share(t.prefill_busy_s, t.prefill_tokens);
    j["tokens_per_iteration_rank"] = share(t.prefill_tokens, static_cast<double>(t.iterations) * ranks);
  }
  if (steps > 0) {
    j["requests_per_rank"] = share(t.decode_requests, steps * ranks);
    j["context_per_request"] = share(t.decode_context, t.decode_requests);
    j["verified_tokens_per_request_step"] = share(t.verified_tokens, t.decode_requests);
    j["kept_tokens_per_request_step"] = share(t.kept_tokens, t.decode_requests);
  }
  j["mean_batch_operators"] = operators_json(*pool.model, mean_batch(t, options.shape, query_tokens), 1, experts);
  return j;
}

Json memory_json(const BuiltPool& pool) {
  Json lines = Json::array();
  for (const MemoryLine& line : pool.memory.lines) lines.push_back({{"what", line.what}, {"bytes", line.bytes}, {"how", line.how}});
  return {{"pool", pool.name}, {"lines", lines}, {"memory_bytes", pool.memory.memory_bytes}, {"kv_pool_bytes", pool.memory.kv_pool_bytes},
          {"kv_capacity_tokens", pool.memory.kv_capacity_tokens}, {"kv_bytes_per_token", pool.memory.kv_bytes_per_token},
          {"kv_fixed_bytes", pool.memory.kv_fixed_bytes}};
}

Json percentiles_json(const Samples& s) {
  return {{"mean", s.mean()}, {"p10", s.percentile(0.1)}, {"p50", s.percentile(0.5)}, {"p75", s.percentile(0.75)},
          {"p90", s.percentile(0.9)}, {"p95", s.percentile(0.95)}, {"p99", s.percentile(0.99)}, {"max", s.percentile(1)}, {"count", s.count()}};
}

// Which pools' time a headline number rests on: first tokens on prompts, inter-token times on answers, the rest on both.
Json basis_by_metric(const std::vector<EngineTotals>& pools, const std::vector<EngineRole>& roles) {
  const auto rests_on = [&](bool prompts, bool answers) {
    BasisShare sum;
    double whole = 0;
    for (std::size_t p = 0; p < pools.size(); ++p) {
      if (roles[p] == EngineRole::prefill && !prompts) continue;
      if (roles[p] == EngineRole::decode && !answers) continue;
      const double weight = share(pools[p].busy_s, pools[p].basis_sampled_s);
      sum.measured += pools[p].basis.measured * weight;
      sum.published += pools[p].basis.published * weight;
      sum.transferred += pools[p].basis.transferred * weight;
      sum.assumed += pools[p].basis.assumed * weight;
      whole += pools[p].busy_s;
    }
    return basis_json(sum, whole);
  };
  Json by_metric;
  for (const MetricDefinition& d : metric_definitions()) {
    if (!d.headline) continue;
    const std::string name(d.name);
    const bool first = name.rfind("ttft", 0) == 0, next = name.rfind("tpot", 0) == 0 || name == "p90_tok_s_user";
    by_metric[name] = rests_on(!next, !first);
  }
  return by_metric;
}

// Utilisation of links over the window, an engine's of one kind together; those that carried nothing are left out.
Json links_json(const SimulationOutcome& o, const std::vector<std::string>& names, const std::vector<Json>& engine_gpus, double window_s) {
  struct Sum { double share = 0, busiest = 0, bytes = 0; int links = 0; };
  std::map<std::pair<std::string, LinkKind>, Sum> sums;
  for (std::size_t i = 0; i < o.links.size(); ++i) {
    const TopologyLink& link = o.links[i];
    std::string owner = link.kind == LinkKind::node_memory ? fmt::format("node-{}", link.place) : "";
    for (std::size_t e = 0; e < names.size() && owner.empty(); ++e)
      if (link.place - engine_gpus[e].front().get<std::uint32_t>() < engine_gpus[e].size()) owner = names[e];
    if (owner.empty() || !(window_s > 0)) continue;
    const double used = share(o.link_bytes[i], link.bytes_per_s * window_s);
    Sum& sum = sums[{owner, link.kind}];
    sum.share += used;
    sum.busiest = std::max(sum.busiest, used);
    sum.bytes += o.link_bytes[i];
    ++sum.links;
  }
  Json links = Json::array();
  for (const auto& [key, sum] : sums)
    if (sum.bytes > 0)
      links.push_back({{"name", fmt::format("{} {}", key.first, link_kind_name(key.second))}, {"links", sum.links}, {"bytes", sum.bytes},
                       {"utilisation", sum.share / sum.links}, {"busiest", sum.busiest}});
  return links;
}

}  // namespace

std::vector<std::string> engine_names(const BuiltRun& built) {
  std::vector<std::string> names;
  for (std::size_t p = 0; p < built.pools.size(); ++p)
    for (std::uint32_t e = 0; e < built.options.pools[p].engines; ++e) names.push_back(fmt::format("{}-{}", built.pools[p].name, e));
  return names;
}

Json manifest_json(const Scenario& scenario, const BuiltRun& built, const std::string& network) {
  Json j;
  j["program"] = "rackcast";
  j["version"] = RACKCAST_VERSION;
  j["name"] = scenario.name;
  j["seed"] = scenario.seed;
  j["network"] = network;
  Json traces = Json::array();
  for (const auto& trace : built.traces)
    traces.push_back({{"source", trace->source}, {"content_hash", fmt::format("{:016x}", trace->content_hash)},
                      {"sessions", trace->sessions.size()}, {"requests", trace->requests.size()}});
  if (traces.size() == 1) j["trace"] = traces[0];
  else if (!traces.empty()) j["trace"] = traces;
  const PricesSpec& prices = scenario.prices;
  j["money"] = {{"token_list", prices.list.name}, {"token_list_source", prices.list.source}, {"period", price_periods[static_cast<std::size_t>(prices.period)].name},
                {"gpu_price", gpu_price_kinds[static_cast<std::size_t>(prices.gpu)].name}, {"gpu_price_and_power_source", scenario.rack.gpu.price_source}};
  j["notes"] = built.notes;
  j["scenario"] = yaml_of(scenario);
  return j;
}

Json metrics_json(const Metrics& metrics) {
  Json j;
  for (const auto& [name, value] : metrics) j[name] = std::isnan(value) ? Json() : Json(value);  // none: null
  return j;
}

Json breakdown_json(const BuiltRun& built, const SimulationOutcome& o, const Recorder& recorder, const Metrics& metrics) {
  const double window_s = o.window_end_s - o.window_start_s;
  const double query_tokens = built.options.acceptance.query_tokens();
  Json j, engines = Json::array(), pools = Json::array(), memory = Json::array();
  std::vector<EngineTotals> whole_run_totals;  // bases are sampled, so all samples are used
  std::vector<EngineRole> roles;
  const std::vector<std::string> names = engine_names(built);
  std::vector<Json> engine_gpus;
  std::size_t at = 0;
  for (std::size_t p = 0; p < built.pools.size(); ++p) {
    const PoolOptions& options = built.options.pools[p];
    const EngineTotals total = sum_of(o.engine_window, at, at + options.engines);
    const EngineTotals whole_run = sum_of(o.engine_total, at, at + options.engines);
    EngineExperts* experts = o.experts[at].get();
    pools.push_back(pool_json(built.pools[p], options, total, whole_run, window_s, query_tokens, experts));
    pools.back()["outside_range"] = range_json(pool_outside(o, at, options.engines), whole_run.basis_sampled_s);
    if (experts) pools.back()["experts"] = experts_json(o, at, at + options.engines);
    memory.push_back(memory_json(built.pools[p]));
    whole_run_totals.push_back(whole_run);
    roles.push_back(options.shape.role);
    const std::vector<RankBatch> batch = mean_batch(total, options.shape, query_tokens);
    if (options.shape.role != EngineRole::prefill) j["decode_step"] = operators_json(*built.pools[p].model, batch, 1, experts);
    if (options.shape.role == EngineRole::prefill)
      j["prefill_token"] = operators_json(*built.pools[p].model, batch, batch.front().prefill_tokens * options.shape.ranks, experts);
    for (std::uint32_t e = 0; e < options.engines; ++e, ++at) {
      const std::uint32_t first = o.engine_first_gpu[at];
      Json gpus = Json::array();
      for (std::uint32_t g = 0; g < options.shape.gpus; ++g) gpus.push_back(first + g);
      engine_gpus.push_back(gpus);
      engines.push_back({{"name", names[at]}, {"role", built.pools[p].name}, {"rack", o.engine_rack[at]}, {"gpus", gpus},
                         {"utilisation", share(o.engine_window[at].busy_s, window_s)},
                         {"iterations", o.engine_window[at].iterations},
                         {"preemptions", o.engine_window[at].preemptions}});
    }
  }
  const RequestStatistics& s = recorder.statistics;
  j["latency"] = {{"ttft_s", percentiles_json(s.ttft)}, {"inter_token_s", percentiles_json(s.itl)}, {"e2e_s", percentiles_json(s.e2e)}};
  j["lengths"] = {{"input_tokens", percentiles_json(s.input)}, {"output_tokens", percentiles_json(s.output)}};
  j["cache"] = {{"hbm", metric(metrics, "cache_hit_gpu")}, {"host", metric(metrics, "cache_hit_host")},
                {"miss", 1 - metric(metrics, "cache_hit_total")}, {"ideal", metric(metrics, "cache_hit_ideal")},
                {"evicted_tokens", o.evicted_tokens}, {"host_tier_used_tokens", o.host_tier_used_tokens},
                {"host_tier_capacity_tokens", o.host_tier_capacity_tokens}};
  j["pools"] = pools;
  j["engines"] = engines;
  if (Json links = links_json(o, names, engine_gpus, window_s); !links.empty()) j["links"] = std::move(links);
  j["basis"] = basis_by_metric(whole_run_totals, roles);
  if (o.transfer.count > 0)
    j["kv_transfer"] = {{"count", o.transfer.count}, {"bytes", o.transfer.bytes},
                        {"descriptors", o.transfer.descriptors}, {"posting_s", o.transfer.posting_s},
                        {"mean_s", share(o.transfer.time_s, static_cast<double>(o.transfer.ended))},
                        {"mean_wait_for_room_s", share(o.transfer.wait_s, static_cast<double>(o.transfer.count))},
                        {"outside_range", range_json(o.transfer_outside, static_cast<double>(o.transfer_moves))}};
  if (!o.failures.empty()) j["failures"] = failures_json(built, o);
  j["memory"] = memory;
  const double rate = share(static_cast<double>(o.arrivals_measured), window_s);
  j["littles_law"] = {{"mean_in_flight", share(o.in_flight_area, window_s)}, {"arrivals_per_s", rate},
                      {"rate_times_mean_time", rate * s.e2e.mean()}};
  j["counts"] = {{"arrivals", o.arrivals}, {"arrivals_measured", o.arrivals_measured}, {"completed_measured", o.finished_measured},
                 {"unfinished_measured", o.unfinished_measured}, {"refused", o.refused}, {"turned_away", o.turned_away}, {"waited_at_door", o.waited_at_door}, {"preemptions", o.preemptions},
                 {"events", o.events}, {"iterations", o.iterations}, {"flows", o.flows}, {"warmup_s", o.window_start_s}, {"window_s", window_s}};
  if (o.exchange_flows > 0) j["counts"]["exchange_flows"] = o.exchange_flows;
  return j;
}

}  // namespace rackcast
