#include "sim/cli/plan_run.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "sim/base/error.hpp"
#include "sim/cli/progress.hpp"

namespace rackcast {

namespace {

using Json = nlohmann::ordered_json;

// The load as later simulations show it may be this much kinder (fewer computed tokens, less output) than seen so far.
constexpr double mix_margin = 1.25;

}  // namespace

double metric_of(const Json& metrics, std::string_view name) {
  const auto found = metrics.find(name);
  return found != metrics.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

PlanRun::PlanRun(const PlanSpec& spec, const Space& space, const Catalog& catalog, Pool& pool, Store* store)
    : spec_(spec), space_(space), catalog_(catalog), pool_(pool), store_(store), lanes_(lane_counts(spec.lanes)) {
  for (const std::string& text : spec.constraints.also) also_.push_back(Expression::parse(text));
  for (std::uint64_t position = 0; position < space.combinations(); ++position) {
    std::string reason;
    if (auto point = space.at(position, reason)) deployments_.push_back(std::move(*point));
    else ++invalid_[reason];
  }
}

void PlanRun::run() {
  PlannerOptions options{.deployments = deployments_.size(), .lanes = {lanes_.begin(), lanes_.end()},
                         .leaders = static_cast<std::size_t>(spec_.leaders), .most_runs = static_cast<std::size_t>(spec_.most_runs)};
  options.most = [this](std::size_t deployment) { return most(deployment); };
  Progress progress("plan");
  plan_ = make_plan(options, [&](const std::vector<PlanPoint>& points) {
    std::vector<PlanMeasure> measures = measure(points);
    ++rounds_;
    // A bisection over n lane counts takes about log2(n) rounds; pilots, all, leaders.
    progress.update(std::min(0.99, rounds_ / (2 * std::log2(static_cast<double>(lanes_.size())) + 5)), fmt::format("{} simulations", seen_.size()));
    return measures;
  });
}

const Seen* PlanRun::look(std::size_t deployment, std::size_t level) const {
  for (const bool thorough : {true, false})
    if (const auto found = seen_.find({deployment, level, thorough}); found != seen_.end()) return &found->second;
  return nullptr;
}

double PlanRun::most(std::size_t deployment) const {
  const bool tokens = spec_.objective == Objective::throughput || spec_.objective == Objective::cost_per_mtok;
  if (!tokens || mix_.output_share >= 1) return std::numeric_limits<double>::infinity();
  const Scenario& scenario = deployments_[deployment].scenario;
  const TokenMix kind{1 - (1 - mix_.cache_hit) / mix_margin, mix_.output_share / mix_margin};
  const double per_gpu = most_tokens_per_s(scenario, catalog_, kind) / (static_cast<double>(scenario.rack.gpus) * scenario.rack.racks);
  if (spec_.objective == Objective::throughput) return per_gpu;
  const auto price = scenario.prices.gpu == GpuPriceKind::owning ? scenario.rack.gpu.owning_price : scenario.rack.gpu.rental_price;
  return per_gpu / price.value() / 1e6;  // Mtok per dollar
}

double PlanRun::score(const PlanPoint& point) const {
  const Json& m = seen_.at(point).metrics;
  const double deployed = metric_of(m, "gpus") / metric_of(m, "rack_gpus");
  switch (spec_.objective) {
    case Objective::throughput: return metric_of(m, "total_tok_s_gpu") * deployed;
    case Objective::revenue: return metric_of(m, "revenue_usd_gpu_hour") * deployed;
    case Objective::cost_per_mtok: return metric_of(m, "total_tok_s_gpu") * deployed * 3600 / metric_of(m, "cost_usd_gpu_hour") / 1e6;
    case Objective::gpus: return lanes_[point.level] / metric_of(m, "rack_gpus");
  }
  return 0;
}

Scenario PlanRun::scenario_of(const PlanPoint& point) const {
  Scenario scenario = deployments_[point.deployment].scenario;
  scenario.workload.concurrency = lanes_[point.level];
  scenario.workload.duration = point.thorough ? spec_.long_run : spec_.short_run;
  scenario.uncertainty = 0;  // bands are made of the winners alone
  scenario.name += fmt::format("{}lanes={}", scenario.name.empty() ? "" : " ", lanes_[point.level]);
  return scenario;
}

std::vector<StoredResult> PlanRun::simulate(const std::vector<Scenario>& scenarios) {
  std::map<std::string, StoredResult> done;
  std::vector<std::string> keys;
  const TaskLimits limits{spec_.space.limits.time.value(), static_cast<std::uint64_t>(spec_.space.limits.memory.value())};
  run_batch(
      pool_,
      [&]() -> std::optional<BatchJob> {
        while (keys.size() < scenarios.size()) {
          const Scenario& scenario = scenarios[keys.size()];
          keys.push_back(content_key(scenario, catalog_));
          const std::string& key = keys.back();
          if (done.contains(key)) continue;  // two points may be one scenario
          done[key] = {};
          if (store_)
            if (auto row = store_->find(key); row && row->status != "error") {
              done[key] = std::move(*row);
              continue;
            }
          return BatchJob{described(scenario, key, position_++), request_of(scenario), limits};
        }
        return std::nullopt;
      },
      [&](StoredResult row) {
        if (store_) store_->put(row);
        done[row.key] = std::move(row);
      });
  std::vector<StoredResult> rows;
  rows.reserve(scenarios.size());
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    rows.push_back(done.at(keys[i]));
    rows.back().name = scenarios[i].name;  // the store's may come from another plan
  }
  return rows;
}

std::vector<PlanMeasure> PlanRun::measure(const std::vector<PlanPoint>& points) {
  std::vector<Scenario> scenarios;
  scenarios.reserve(points.size());
  for (const PlanPoint& point : points) scenarios.push_back(scenario_of(point));
  const std::vector<StoredResult> rows = simulate(scenarios);
  std::vector<PlanMeasure> measures;
  for (std::size_t i = 0; i < points.size(); ++i) {
    keep(points[i], rows[i]);
    measures.push_back(measure_of(points[i]));
  }
  return measures;
}

void PlanRun::keep(const PlanPoint& point, const StoredResult& row) {
  Seen seen{row, Json::parse(row.metrics), {}};
  if (row.status == "done") {
    const Json& m = seen.metrics;
    simulated_s_ += metric_of(m, "sim_seconds");
    const double hit = metric_of(m, "cache_hit_ideal"), output = metric_of(m, "output_tok_s_gpu") / metric_of(m, "total_tok_s_gpu");
    if (hit > mix_.cache_hit) mix_.cache_hit = hit;
    if (output > 0 && output < mix_.output_share) mix_.output_share = output;
    for (std::size_t i = 0; i < limitable_metrics.size(); ++i) {
      const double limit = spec_.constraints.limits[i], value = metric_of(m, limitable_metrics[i].metric);
      if (!std::isnan(limit) && !(limitable_metrics[i].at_least ? value >= limit : value <= limit)) seen.missed.emplace_back(limitable_metrics[i].metric);
    }
    for (const Expression& expression : also_) {
      const bool holds = expression.holds([&](std::string_view name) -> ExpressionValue {
        const double value = metric_of(m, name);
        if (std::isnan(value)) throw UserError("constraints.also: there is no metric " + std::string(name));
        return value;
      });
      if (!holds) seen.missed.push_back(expression.text());
    }
  }
  seen_[point] = std::move(seen);
}

PlanMeasure PlanRun::measure_of(const PlanPoint& point) const {
  const Seen& seen = seen_.at(point);
  if (seen.row.status != "done") return {};
  PlanMeasure measure{true, seen.missed.empty(), score(point), 0};
  const double demand = metric_of(seen.metrics, "lane_demand_tok_s_gpu"), reached = metric_of(seen.metrics, "total_tok_s_gpu");
  // Revenue a token depends on cache hits, so demand is no bound of it.
  if (demand > 0 && reached > 0 && (spec_.objective == Objective::throughput || spec_.objective == Objective::cost_per_mtok))
    measure.most_per_lane = measure.score * demand / reached / lanes_[point.level];
  else if (spec_.objective == Objective::gpus)
    measure.most_per_lane = 1 / metric_of(seen.metrics, "rack_gpus");
  return measure;
}

}  // namespace rackcast
