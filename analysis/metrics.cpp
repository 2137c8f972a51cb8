#include "analysis/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/error.hpp"

namespace rackcast {

namespace {

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }
constexpr double none = std::numeric_limits<double>::quiet_NaN();  // the load has no such thing: null in JSON
double inverse(double seconds) { return seconds > 0 ? 1 / seconds : none; }
double mean(const Samples& s) { return s.count() > 0 ? s.mean() : none; }
double percentile(const Samples& s, double share) { return s.count() > 0 ? s.percentile(share) : none; }

}  // namespace

const std::vector<MetricDefinition>& metric_definitions() {
  static const std::vector<MetricDefinition> table = {
      {"total_tok_s_gpu", "tok/s/GPU", "(input incl. cached + output) of measured requests / window / deployed GPUs", true},
      {"cached_tok_s_gpu", "tok/s/GPU", "input found in HBM or host memory / window / GPUs", false},
      {"uncached_tok_s_gpu", "tok/s/GPU", "input that was computed / window / GPUs", false},
      {"output_tok_s_gpu", "tok/s/GPU", "output / window / GPUs", true},
      {"p50_tok_s_user", "tok/s", "1 / median inter-token latency of a request", false},
      {"p90_tok_s_user", "tok/s", "1 / 90th percentile of inter-token latency: nine users in ten are at least this fast", true},
      {"p99_tok_s_user", "tok/s", "1 / 99th percentile of inter-token latency", false},
      {"e2e_norm_p90_tok_s_user", "tok/s", "1 / 90th percentile of (end-to-end time / output tokens)", true},
      {"ttft_mean_s", "s", "mean time from arrival to the first token at the user", false},
      {"ttft_p50_s", "s", "median time from arrival to the first token at the user", true},
      {"ttft_p90_s", "s", "90th percentile of it", true},
      {"ttft_p99_s", "s", "99th percentile of it", false},
      {"tpot_mean_s", "s", "mean over requests of (last - first token) / (output - 1)", false},
      {"tpot_p50_s", "s", "median of it", true},
      {"tpot_p90_s", "s", "90th percentile of it", false},
      {"e2e_mean_s", "s", "mean time from arrival to the last token", false},
      {"cache_hit_gpu", "", "input found in HBM / input in full blocks", true},
      {"cache_hit_host", "", "input loaded from host memory / input in full blocks", true},
      {"cache_hit_total", "", "both", true},
      {"cache_hit_ideal", "", "what a cache that never forgets would have held of the same requests", true},
      {"requests_completed", "", "measured requests that ended in the window or its grace", true},
      {"requests_per_lane_hour", "1/h", "the same per lane and hour", false},
      {"revenue_usd_gpu_hour", "USD/h", "what the tokens are sold for, per GPU", true},
      {"cost_usd_gpu_hour", "USD/h", "price of a GPU", false},
      {"cost_usd_per_mtok", "USD/Mtok", "GPU cost of a million tokens (input incl. cached + output)", true},
      {"revenue_usd_per_mtok", "USD/Mtok", "what a million tokens are sold for", false},
      {"tok_per_joule", "tok/J", "total_tok_s_gpu / all-in power of a GPU", true},
      {"kwh_per_mtok", "kWh/Mtok", "energy of a million tokens at that power", false},
      {"gpus", "", "GPUs of the deployed engines; every figure per GPU divides by it", false},
      {"rack_gpus", "", "GPUs of the racks, deployed or not", false},
      {"total_tok_s_rack", "tok/s", "total tokens per second of one rack", true},
      {"lane_demand_tok_s_gpu", "tok/s/GPU", "what the lanes would ask of a server without latency", false},
      {"achieved_of_demand", "", "total_tok_s_gpu / lane_demand_tok_s_gpu", false},
      {"sim_seconds", "s", "simulated time, warm-up included", false},
      {"outside_range", "", "share of the engines' time in launches outside the range of their cost file's points", false},
  };
  return table;
}

void RequestStatistics::add(const RequestRecord& r) {
  first_arrival_s = requests == 0 ? r.arrival_s : std::min(first_arrival_s, r.arrival_s);
  last_finish_s = std::max(last_finish_s, r.finish_s);
  ++requests;
  input_tokens += r.input_tokens;
  output_tokens += r.output_tokens;
  block_tokens += r.input_block_tokens;
  hit_gpu += r.hit_gpu_tokens;
  hit_host += r.hit_host_tokens;
  hit_ideal += r.hit_ideal_tokens;
  const double e2e_s = r.finish_s - r.arrival_s;
  ttft.add(r.first_token_s - r.arrival_s);
  e2e.add(e2e_s);
  e2e_per_token.add(e2e_s / std::max(1U, r.output_tokens));
  if (r.output_tokens >= 2) itl.add((r.finish_s - r.first_token_s) / (r.output_tokens - 1));
  input.add(r.input_tokens);
  output.add(r.output_tokens);
}

Metrics metrics_of(const RequestStatistics& s, const MetricContext& c) {
  const double gpu_seconds = s.window_s() * c.gpus;
  const double hits = s.hit_gpu + s.hit_host;
  const double tokens = s.input_tokens + s.output_tokens;
  const double total = share(tokens, gpu_seconds);
  const double revenue = hits * c.cached_usd + (s.input_tokens - hits) * c.input_usd + s.output_tokens * c.output_usd;
  const double lane_hours = c.lanes * s.window_s() / 3600;
  const double demand = c.lane_demand_tok_s > 0 && std::isfinite(c.lane_demand_tok_s) ? c.lane_demand_tok_s / c.gpus : none;
  Metrics m;
  const auto set = [&](std::string_view name, double value) { m.emplace_back(name, value); };
  set("total_tok_s_gpu", total);
  set("cached_tok_s_gpu", share(hits, gpu_seconds));
  set("uncached_tok_s_gpu", share(s.input_tokens - hits, gpu_seconds));
  set("output_tok_s_gpu", share(s.output_tokens, gpu_seconds));
  set("p50_tok_s_user", inverse(percentile(s.itl, 0.5)));
  set("p90_tok_s_user", inverse(percentile(s.itl, 0.9)));
  set("p99_tok_s_user", inverse(percentile(s.itl, 0.99)));
  set("e2e_norm_p90_tok_s_user", inverse(percentile(s.e2e_per_token, 0.9)));
  set("ttft_mean_s", mean(s.ttft));
  set("ttft_p50_s", percentile(s.ttft, 0.5));
  set("ttft_p90_s", percentile(s.ttft, 0.9));
  set("ttft_p99_s", percentile(s.ttft, 0.99));
  set("tpot_mean_s", mean(s.itl));
  set("tpot_p50_s", percentile(s.itl, 0.5));
  set("tpot_p90_s", percentile(s.itl, 0.9));
  set("e2e_mean_s", mean(s.e2e));
  set("cache_hit_gpu", share(s.hit_gpu, s.block_tokens));
  set("cache_hit_host", share(s.hit_host, s.block_tokens));
  set("cache_hit_total", share(hits, s.block_tokens));
  set("cache_hit_ideal", share(s.hit_ideal, s.block_tokens));
  set("requests_completed", static_cast<double>(s.requests));
  set("requests_per_lane_hour", share(static_cast<double>(s.requests), lane_hours));
  set("revenue_usd_gpu_hour", share(revenue, gpu_seconds) * 3600);
  set("cost_usd_gpu_hour", c.gpu_usd_per_s * 3600);
  set("cost_usd_per_mtok", share(c.gpu_usd_per_s * 1e6, total));
  set("revenue_usd_per_mtok", share(revenue * 1e6, tokens));
  set("tok_per_joule", share(total, c.gpu_watts));
  set("kwh_per_mtok", share(c.gpu_watts * 1e6, total) / 3.6e6);
  set("gpus", c.gpus);
  set("rack_gpus", c.rack_gpus);
  set("total_tok_s_rack", total * c.gpus / c.racks);
  set("lane_demand_tok_s_gpu", demand);
  set("achieved_of_demand", total / demand);
  set("sim_seconds", c.sim_seconds);
  set("outside_range", c.outside_range);
  return m;
}

double metric(const Metrics& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics)
    if (key == name) return value;
  throw InternalError("no metric is called " + std::string(name));
}

}  // namespace rackcast
