// rackcast trace stats|convert|generate: what a load looks like, its run-length form, and loads made to measure.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sim/base/error.hpp"
#include "sim/base/output.hpp"
#include "sim/base/text_table.hpp"
#include "sim/cli/verbs.hpp"
#include "sim/trace/agentx.hpp"
#include "sim/trace/generate.hpp"
#include "sim/trace/named_trace.hpp"
#include "sim/trace/read.hpp"
#include "sim/trace/session_demand.hpp"
#include "sim/trace/shape_report.hpp"
#include "sim/trace/statistics.hpp"
#include "sim/trace/write_weka.hpp"

namespace rackcast {

namespace {

constexpr std::uint32_t demand_lanes = 3072;
constexpr double demand_window_s = 1800;

struct TraceOptions {
  std::vector<std::string> paths;
  std::string out, like;
  std::uint64_t seed = 1;
  bool json = false;
};

Trace read_inputs(const std::vector<std::string>& paths) {
  if (paths.size() != 1) return read_trace(paths);
  NamedTrace named = open_trace(paths[0]);
  if (!named.note.empty()) throw UserError(named.note + "; set RACKCAST_DATA or name a file");
  return std::move(named.trace);
}

nlohmann::ordered_json json_of(const Distribution& d) {
  return {{"count", d.count}, {"mean", d.mean}, {"p10", d.p10}, {"p50", d.p50}, {"p90", d.p90}, {"p95", d.p95}, {"p99", d.p99}, {"max", d.max}};
}

// Only trees of agents can be asked what their lanes demand.
bool is_agentic(const Trace& trace, const TraceStatistics& s) { return !trace.block_ids_global && s.streams > 0; }

struct Demand {
  LaneDemand window;         // as `run` states it
  SessionDemand sessions;    // in the long run
};

Demand demand_of(const Trace& trace) {
  const AgentxOptions options{.trace = &trace, .plans = session_plans(trace), .lanes = demand_lanes};
  return {lane_demand(options, demand_window_s), session_demand(trace, *options.plans, options.tree_idle_cap_s)};
}

nlohmann::ordered_json stats_json(const Trace& trace, const TraceStatistics& s) {
  nlohmann::ordered_json json = {{"source", trace.source},
                                 {"content_hash", fmt::format("{:016x}", trace.content_hash)},
                                 {"sessions", s.sessions},
                                 {"requests", s.requests},
                                 {"main_requests", s.main_requests},
                                 {"inner_requests", s.inner_requests},
                                 {"subagent_groups", s.subagent_groups},
                                 {"sessions_with_groups", s.sessions_with_groups},
                                 {"input_tokens", static_cast<std::uint64_t>(s.input_tokens)},
                                 {"output_tokens", static_cast<std::uint64_t>(s.output_tokens)},
                                 {"output_share", s.output_share},
                                 {"input_p50", s.input.p50}, {"input_p90", s.input.p90}, {"input_p99", s.input.p99},
                                 {"output_p50", s.output.p50}, {"output_p90", s.output.p90},
                                 {"new_tokens_p50", s.new_tokens.p50},
                                 {"gap_p50_s", s.gap_s.p50},
                                 {"gap_over_300_s", s.gap_over_300_s}, {"gap_over_1800_s", s.gap_over_1800_s},
                                 {"hit_ideal", s.hit_ideal}, {"hit_previous", s.hit_previous}};
  for (const auto& [name, d] : {std::pair<const char*, const Distribution*>{"input", &s.input}, {"input_main", &s.input_main},
                                {"input_inner", &s.input_inner}, {"output", &s.output}, {"output_main", &s.output_main},
                                {"new_tokens", &s.new_tokens}, {"turns_per_session", &s.turns_per_session}, {"gap_s", &s.gap_s},
                                {"think_s", &s.think_s}, {"groups_per_session", &s.groups_per_session},
                                {"requests_per_group", &s.requests_per_group}, {"group_minutes", &s.group_minutes},
                                {"groups_at_once", &s.groups_at_once}})
    json["distributions"][name] = json_of(*d);
  json["streams"] = {{"all", s.streams}, {"subagent", s.subagent_streams}, {"sibling", s.sibling_streams}, {"flat", s.flat_streams},
                     {"barrier_edges", s.barrier_edges}, {"gated_requests", s.gated_requests}};
  if (is_agentic(trace, s)) {
    const auto [window, sessions] = demand_of(trace);
    json["lane_demand"] = {{"lanes", demand_lanes}, {"window_s", demand_window_s}, {"tokens_per_s_lane", window.tokens_per_s / demand_lanes},
                           {"requests_per_lane_hour", window.requests_per_lane_hour}, {"input_mean", window.input_mean}};
    json["session_demand"] = {{"tokens_per_s_lane", sessions.tokens_per_s}, {"requests_per_lane_hour", sessions.requests_per_hour}};
  }
  return json;
}

void print_stats(const Trace& trace, const TraceStatistics& s) {
  fmt::print("{}\n\n", trace.source);
  TextTable totals({"what", ">value"});
  const auto row = [&totals](const char* name, const std::string& value) { totals.add({name, value}); };
  row("sessions", fmt::format("{}", s.sessions));
  row("requests", fmt::format("{}", s.requests));
  row("  of subagents", fmt::format("{}", s.inner_requests));
  row("subagent groups", fmt::format("{}", s.subagent_groups));
  row("input tokens", fmt::format("{:.6g}", s.input_tokens));
  row("output tokens", fmt::format("{:.6g}", s.output_tokens));
  row("output share", fmt::format("{:.3f} %", 100 * s.output_share));
  row("hit, infinite cache a session", fmt::format("{:.4f}", s.hit_ideal));
  row("hit, previous request of the stream", fmt::format("{:.4f}", s.hit_previous));
  if (is_agentic(trace, s)) {
    const auto [window, sessions] = demand_of(trace);
    row("lane demand in 30 min, tokens/s", fmt::format("{:.0f}", window.tokens_per_s / demand_lanes));
    row("lane demand in 30 min, requests/h", fmt::format("{:.0f}", window.requests_per_lane_hour));
    row("lane demand of whole sessions, tokens/s", fmt::format("{:.0f}", sessions.tokens_per_s));
    row("lane demand of whole sessions, requests/h", fmt::format("{:.0f}", sessions.requests_per_hour));
  }
  fmt::print("{}\n", totals.text());
  TextTable table({"distribution", ">p10", ">p50", ">p90", ">p99", ">max", ">mean"});
  for (const auto& [name, d] : {std::pair<const char*, const Distribution*>{"input tokens", &s.input}, {"  main agent", &s.input_main},
                                {"  subagents", &s.input_inner}, {"output tokens", &s.output}, {"  main agent", &s.output_main},
                                {"new tokens", &s.new_tokens}, {"main requests of a session", &s.turns_per_session},
                                {"gap end to start, s", &s.gap_s}, {"groups of a session", &s.groups_per_session},
                                {"requests of a group", &s.requests_per_group}, {"length of a group, min", &s.group_minutes}}) {
    if (d->count == 0) continue;
    const auto cell = [](double value) { return value < 100 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value); };
    table.add({name, cell(d->p10), cell(d->p50), cell(d->p90), cell(d->p99), cell(d->max), cell(d->mean)});
  }
  fmt::print("{}", table.text());
}

int stats(const TraceOptions& options) {
  const Trace trace = read_inputs(options.paths);
  const TraceStatistics s = statistics_of(trace);
  if (options.json) fmt::print("{}\n", stats_json(trace, s).dump(2));
  else print_stats(trace, s);
  return 0;
}

int convert(const TraceOptions& options) {
  const Trace trace = read_inputs(options.paths);
  refuse_overwriting(options.out, options.paths);
  write_weka(trace, options.out);
  if (options.json) fmt::print("{}\n", nlohmann::ordered_json{{"out", options.out}, {"sessions", trace.sessions.size()}, {"requests", trace.requests.size()}}.dump(2));
  else fmt::print("{}: {} sessions, {} requests\n", options.out, trace.sessions.size(), trace.requests.size());
  return 0;
}

int generate(const TraceOptions& options) {
  const LoadShape shape = options.like.empty() ? agentx_v1_shape() : shape_of(read_inputs({options.like}));
  const Trace trace = generate_trace(shape, options.seed);
  if (!options.out.empty()) write_weka(trace, options.out);
  const std::vector<ShapeRow> rows = options.like.empty() ? agentx_v1_rows(statistics_of(trace))
                                                          : like_rows(statistics_of(read_inputs({options.like})), statistics_of(trace));
  if (options.json) {
    nlohmann::ordered_json json = {{"source", trace.source}, {"content_hash", fmt::format("{:016x}", trace.content_hash)},
                                   {"sessions", trace.sessions.size()}, {"requests", trace.requests.size()}};
    for (const ShapeRow& row : rows) json["rows"].push_back({{"name", row.name}, {"target", row.target}, {"generated", row.generated}});
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  TextTable table({"what", ">target", ">generated", ">off"});
  for (const ShapeRow& row : rows)
    table.add({row.name, fmt::format("{:.6g}", row.target), fmt::format("{:.6g}", row.generated),
               row.target == 0 ? "" : fmt::format("{:+.1f} %", 100 * (row.generated / row.target - 1))});
  fmt::print("{}\n\n{}", trace.source, table.text());
  if (!options.out.empty()) fmt::print("\n{}: {} sessions, {} requests\n", options.out, trace.sessions.size(), trace.requests.size());
  return 0;
}

}  // namespace

Action setup_trace(CLI::App& app, const Program&) {
  const auto options = std::make_shared<TraceOptions>();
  app.require_subcommand(1);
  CLI::App* stats_app = app.add_subcommand("stats", "lengths, reuse, gaps and trees of a load, and what its lanes demand");
  CLI::App* convert_app = app.add_subcommand("convert", "agent sessions with block ids as runs, one a line; gzip for *.gz");
  CLI::App* generate_app = app.add_subcommand("generate", "a load of the AgentX v1.0 shape, or like a trace; target against generated");
  const char* inputs = "files or folders (agent sessions, Mooncake, Azure; plain or .gz), or kv-cache-tester, generated-v1.0[:SEED]";
  for (CLI::App* sub : {stats_app, convert_app}) sub->add_option("FILE", options->paths, inputs)->required()->type_name("");
  convert_app->add_option("--out", options->out, "file to write")->required();
  generate_app->add_option("--out", options->out, "file to write; without it only the comparison is printed");
  generate_app->add_option("--like", options->like, "trace whose shape is taken");
  add_seed(*generate_app, options->seed, "seed of the draws")->capture_default_str();
  for (CLI::App* sub : {stats_app, convert_app, generate_app}) sub->add_flag("--json", options->json, "as JSON");
  stats_app->footer("Example:\n  rackcast trace stats sessions/");
  convert_app->footer("Example:\n  rackcast trace convert sessions/ --out sessions.jsonl.gz");
  generate_app->footer("Example:\n  rackcast trace generate --like sessions/ --seed 7 --out like.jsonl.gz");
  return [options, stats_app, convert_app] { return stats_app->parsed() ? stats(*options) : convert_app->parsed() ? convert(*options) : generate(*options); };
}

}  // namespace rackcast
