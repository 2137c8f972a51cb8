#include "sim/cli/run_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/metrics.hpp"

namespace rackcast {

namespace {

using Json = nlohmann::ordered_json;
using Out = std::back_insert_iterator<std::string>;

std::string number(double value) {
  if (std::isnan(value)) return "none";
  const double size = std::abs(value);
  if (size >= 10000) return fmt::format("{:.0f}", value);
  if (size >= 100) return fmt::format("{:.1f}", value);
  return fmt::format("{:.4g}", value);
}

double at(const Json& j, const char* key) {
  const Json& value = j.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}
std::string text(const Json& j, const char* key) { return j.at(key).get<std::string>(); }
std::string percent(double share) { return fmt::format("{:.1f}%", share * 100); }

std::string basis_text(const Json& b) {
  std::string line;
  for (const char* key : {"measured", "published", "transferred", "assumed"})
    if (at(b, key) >= 0.0005) line += fmt::format("{}{} {:.0f}%", line.empty() ? "" : ", ", key, at(b, key) * 100);
  return line;
}

void headline(const Json& result, Out out) {
  const Json& metrics = result.at("metrics");
  const Json& basis = result.at("breakdown").at("basis");
  fmt::format_to(out, "{:<26}{:>12} {:<11} {}\n", "", "", "", "what it is [what its time rests on]");
  for (const MetricDefinition& d : metric_definitions()) {
    if (!d.headline) continue;
    const std::string name(d.name);
    fmt::format_to(out, "{:<26}{:>12} {:<11} {} [{}]\n", name, number(at(metrics, name.c_str())), d.unit, d.definition, basis_text(basis.at(name)));
  }
}

void latency(const Json& b, Out out) {
  fmt::format_to(out, "\n{:<18}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "latency", "mean", "p50", "p75", "p90", "p95", "p99");
  const auto row = [&](const char* label, const char* group, const char* key, double scale) {
    const Json& p = b.at(group).at(key);
    if (at(p, "count") == 0) return;
    fmt::format_to(out, "{:<18}", label);
    for (const char* column : {"mean", "p50", "p75", "p90", "p95", "p99"}) fmt::format_to(out, "{:>10}", number(at(p, column) * scale));
    fmt::format_to(out, "\n");
  };
  row("first token, s", "latency", "ttft_s", 1);
  row("between tokens, ms", "latency", "inter_token_s", 1000);
  row("end to end, s", "latency", "e2e_s", 1);
  row("input, tokens", "lengths", "input_tokens", 1);
  row("output, tokens", "lengths", "output_tokens", 1);
}

void cache_and_demand(const Json& result, Out out) {
  const Json& c = result.at("breakdown").at("cache");
  fmt::format_to(out, "\ncache          HBM {}, host memory {}, computed {}; an endless cache: {}\n", percent(at(c, "hbm")),
                 percent(at(c, "host")), percent(at(c, "miss")), percent(at(c, "ideal")));
  const Json& m = result.at("metrics");
  if (at(m, "lane_demand_tok_s_gpu") > 0)
    fmt::format_to(out, "lane demand    {} tok/s/GPU from a server without latency; achieved {} of it\n", number(at(m, "lane_demand_tok_s_gpu")),
                   percent(at(m, "achieved_of_demand")));
  const Json& n = result.at("breakdown").at("counts");
  fmt::format_to(out, "requests       {} ended, {} in flight at the end, {} refused, {} put back; warm-up {} s, window {} s\n",
                 number(at(n, "completed_measured")), number(at(n, "unfinished_measured")), number(at(n, "refused")),
                 number(at(n, "preemptions")), number(at(n, "warmup_s")), number(at(n, "window_s")));
}

// The six operators that cost most; kinds of layers (encoder and decoder, dense and sparse) are added up.
void mean_batch(const Json& list, Out out) {
  struct Row {
    std::string name, basis;
    double time_s = 0;
  };
  std::vector<Row> rows;
  double sum = 0;
  for (const Json& op : list) {
    const std::string name = text(op, "name"), basis = text(op, "basis");
    const auto same = [&](const Row& row) { return row.name == name && row.basis == basis; };
    auto found = std::find_if(rows.begin(), rows.end(), same);
    if (found == rows.end()) found = rows.insert(rows.end(), {name, basis, 0});
    found->time_s += at(op, "time_s");
    sum += at(op, "time_s");
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& x, const Row& y) { return x.time_s > y.time_s; });
  for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 6); ++i)
    fmt::format_to(out, "{}{:<32} {:>8} us  {:>6}  {}\n", i == 0 ? "  mean batch    " : "                ", rows[i].name,
                   number(rows[i].time_s * 1e6), percent(rows[i].time_s / sum), rows[i].basis);
}

void failures(const Json& f, Out out) {
  const Json& r = f.at("requests");
  fmt::format_to(out, "\nfailures       requests: {:.0f} completed, {:.0f} of them after a retry, {:.0f} lost, {:.0f} unfinished\n", at(r, "completed"),
                 at(r, "retried_and_completed"), at(r, "lost"), at(r, "unfinished"));
  for (const Json& e : f.at("events")) {
    const bool back = !e.at("back_s").is_null(), recovered = !e.at("recovered_after_s").is_null();
    fmt::format_to(out, "  {:>7} s  {} of {} {:.0f}, GPU {:.0f}: {:.0f} requests hit, {}; lowest {} of the rate before, {} Mtok lost, {}\n", number(at(e, "at_s")),
                   text(e, "kind"), text(e, "pool"), at(e, "engine"), at(e, "gpu"), at(e, "requests_hit"),
                   back ? fmt::format("back at {} s", number(at(e, "back_s"))) : "not back",
                   at(e, "goodput_before_tok_s") > 0 ? percent(at(e, "goodput_lowest_tok_s") / at(e, "goodput_before_tok_s")) : "-",
                   number(at(e, "goodput_lost_tokens") / 1e6), recovered ? fmt::format("recovered after {} s", number(at(e, "recovered_after_s"))) : "not recovered");
  }
}

// Uneven experts: the slowest rank, and what rearrangements took, of the main model and the draft apart.
void experts(const Json& e, Out out) {
  for (const char* part : {"main", "draft"}) {
    if (!e.contains(part)) continue;
    const Json& p = e.at(part);
    std::string line;
    if (p.contains("slowest_rank_over_balanced"))
      line = fmt::format("slowest rank {} x the balanced rows, {} x the touched experts", number(at(p.at("slowest_rank_over_balanced"), "rows")),
                         number(at(p.at("slowest_rank_over_balanced"), "touched_experts")));
    if (at(p, "rearrangements") > 0)
      line += fmt::format("{}{} rearrangement{} of {} s, {} GB; imbalance {} -> {}", line.empty() ? "" : "; ", number(at(p, "rearrangements")), at(p, "rearrangements") > 1 ? "s" : "",
                          number(at(p, "mean_rearrangement_s")), number(at(p, "mean_moved_bytes") / 1e9), percent(at(p, "imbalance_before")),
                          percent(at(p, "imbalance_after")));
    if (!line.empty()) fmt::format_to(out, "  experts       {}: {}\n", part, line);
  }
  if (at(e, "stall_s") > 0) fmt::format_to(out, "  moving them   the engine stood still for {} s\n", number(at(e, "stall_s")));
  if (at(e, "slowdown_s") > 0) fmt::format_to(out, "  moving them   steps {:.2g}% longer while weights share the links\n", 100 * at(e, "slowdown_share"));
}

void pools(const Json& b, Out out) {
  for (const Json& p : b.at("pools")) {
    fmt::format_to(out, "\n{}: {} engines, {} GPUs, busy {} of the window; mean iteration {} ms\n", text(p, "name"), number(at(p, "engines")),
                   number(at(p, "gpus")), percent(at(p, "utilisation")), number(at(p.at("mean_iteration"), "total_s") * 1e3));
    std::string busy;
    for (const Json& e : b.at("engines"))
      if (text(e, "role") == text(p, "name") && busy.size() < 400) busy += " " + percent(at(e, "utilisation"));
    fmt::format_to(out, "  each engine   {}\n", busy.empty() ? "" : busy.substr(1));
    const double total = at(p.at("mean_iteration"), "total_s");
    std::string parts;
    for (const char* group : {"attention_s", "moe_s", "other_s", "head_s", "draft_s", "host_s"}) {
      const double time = at(p.at("mean_iteration"), group);
      if (total > 0 && time / total >= 0.0005)
        parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", std::string(group, std::string(group).size() - 2), percent(time / total));
    }
    fmt::format_to(out, "  its time      {} [{}]\n", parts, basis_text(p.at("basis")));
    if (p.contains("computed_input_tok_s_gpu"))
      fmt::format_to(out, "  prompts       {} computed tok/s/GPU, {} us of engine time a token, {} tokens an iteration and rank\n",
                     number(at(p, "computed_input_tok_s_gpu")), number(at(p, "busy_s_per_computed_token") * 1e6), number(at(p, "tokens_per_iteration_rank")));
    if (p.contains("requests_per_rank"))
      fmt::format_to(out, "  answers       {} requests a rank and step, context {}, {} tokens kept a request and step\n", number(at(p, "requests_per_rank")),
                     number(at(p, "context_per_request")), number(at(p, "kept_tokens_per_request_step")));
    if (p.contains("experts")) experts(p.at("experts"), out);
    mean_batch(p.at("mean_batch_operators"), out);
  }
  if (b.contains("failures")) failures(b.at("failures"), out);
  if (!b.contains("kv_transfer")) return;
  const Json& t = b.at("kv_transfer");
  fmt::format_to(out, "\nhand-over      {} prompts, {} GB, mean {} ms, of it {} ms waiting for room\n", number(at(t, "count")), number(at(t, "bytes") / 1e9),
                 number(at(t, "mean_s") * 1e3), number(at(t, "mean_wait_for_room_s") * 1e3));
}

void money(const Json& m, Out out) {
  fmt::format_to(out, "\nmoney          tokens by list {} ({}), {}; GPU-hours {}, all-in power ({})\n", text(m, "token_list").empty() ? "none" : text(m, "token_list"),
                 text(m, "token_list_source"), text(m, "period"), text(m, "gpu_price"), text(m, "gpu_price_and_power_source"));
}

void memory(const Json& b, Out out) {
  for (const Json& m : b.at("memory")) {
    fmt::format_to(out, "\nmemory of a {} GPU, {} GB\n", text(m, "pool"), number(at(m, "memory_bytes") / 1e9));
    for (const Json& line : m.at("lines"))
      fmt::format_to(out, "  {:<24}{:>9} GB  {}\n", text(line, "what"), number(at(line, "bytes") / 1e9), text(line, "how"));
    fmt::format_to(out, "  {:<24}{:>9} GB  {} tokens a rank\n", "KV pool", number(at(m, "kv_pool_bytes") / 1e9), number(at(m, "kv_capacity_tokens")));
  }
}

}  // namespace

std::string run_table(const Json& result) {
  std::string table;
  const Out out = std::back_inserter(table);
  const Json& manifest = result.at("manifest");
  fmt::format_to(out, "{}: {} GPUs of {}\n\n", text(manifest, "name"), number(at(result.at("metrics"), "gpus")), number(at(result.at("metrics"), "rack_gpus")));
  headline(result, out);
  latency(result.at("breakdown"), out);
  cache_and_demand(result, out);
  pools(result.at("breakdown"), out);
  if (manifest.contains("money")) money(manifest.at("money"), out);
  memory(result.at("breakdown"), out);
  for (const Json& note : manifest.at("notes")) fmt::format_to(out, "\nnote: {}\n", note.get<std::string>());
  return table;
}

}  // namespace rackcast
