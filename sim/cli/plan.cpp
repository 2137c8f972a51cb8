// rackcast plan: the best deployment of a plan file's space within its limits, and what stands in the way of a better one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/planner.hpp"
#include "sim/cli/mpi_pool.hpp"
#include "sim/cli/progress.hpp"
#include "sim/cli/verbs.hpp"
#include "sim/spec/plan.hpp"

namespace rackcast {

namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string file, out;
  std::vector<std::string> sets;
  std::size_t jobs = 0;
  bool json = false;
};

double metric_of(const Json& metrics, std::string_view name) {
  const auto found = metrics.find(name);
  return found != metrics.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// One simulated point: lanes on a deployment.
struct Seen {
  StoredResult row;
  Json metrics;
  std::vector<std::string> missed;  // limits that do not hold
};

class PlanRun {
 public:
  PlanRun(const PlanSpec& spec, const Space& space, const Catalog& catalog, Pool& pool, Store* store)
      : spec_(spec), space_(space), catalog_(catalog), pool_(pool), store_(store), lanes_(lane_counts(spec.lanes)) {
    for (const std::string& text : spec.constraints.also) also_.push_back(Expression::parse(text));
    for (std::uint64_t position = 0; position < space.combinations(); ++position) {
      std::string reason;
      if (auto point = space.at(position, reason)) deployments_.push_back(std::move(*point));
      else ++invalid_[reason];
    }
  }

  void run() {
    PlannerOptions options{.deployments = deployments_.size(), .lanes = {lanes_.begin(), lanes_.end()},
                           .leaders = static_cast<std::size_t>(spec_.leaders), .most_runs = static_cast<std::size_t>(spec_.most_runs)};
    Progress progress("plan");
    plan_ = make_plan(options, [&](const std::vector<PlanPoint>& points) {
      std::vector<PlanMeasure> measures = simulate(points);
      ++rounds_;
      // A bisection over n lane counts takes about log2(n) rounds, the leaders two more.
      progress.update(std::min(0.99, rounds_ / (std::log2(static_cast<double>(lanes_.size())) + 3)), fmt::format("{} simulations", seen_.size()));
      return measures;
    });
  }

  const Plan& plan() const { return plan_; }
  const Seen& seen(const PlanPoint& point) const { return seen_.at(point); }
  const std::vector<SweepPoint>& deployments() const { return deployments_; }
  double simulated_s() const { return simulated_s_; }
  double exhaustive_s() const { return static_cast<double>(deployments_.size() * lanes_.size()) * spec_.long_run.value(); }
  std::size_t lane_levels() const { return lanes_.size(); }
  int lanes(const PlanPoint& point) const { return lanes_[point.level]; }
  const std::map<std::string, std::uint64_t>& invalid() const { return invalid_; }
  const std::map<PlanPoint, Seen>& all() const { return seen_; }

  // What the objective is at a point, higher is better; cost counts as its inverse.
  double score(const PlanPoint& point) const {
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

 private:
  Scenario scenario_of(const PlanPoint& point) const {
    Scenario scenario = deployments_[point.deployment].scenario;
    scenario.workload.concurrency = lanes_[point.level];
    scenario.workload.duration = point.thorough ? spec_.long_run : spec_.short_run;
    scenario.name += fmt::format("{}lanes={}", scenario.name.empty() ? "" : " ", lanes_[point.level]);
    return scenario;
  }

  std::vector<PlanMeasure> simulate(const std::vector<PlanPoint>& points) {
    std::map<std::string, std::vector<PlanPoint>> of_key;
    std::size_t at = 0;
    const TaskLimits limits{spec_.space.limits.time.value(), static_cast<std::uint64_t>(spec_.space.limits.memory.value())};
    run_batch(
        pool_,
        [&]() -> std::optional<BatchJob> {
          while (at < points.size()) {
            const PlanPoint& point = points[at++];
            const Scenario scenario = scenario_of(point);
            std::string key = content_key(scenario, catalog_);
            std::vector<PlanPoint>& same = of_key[key];
            same.push_back(point);
            if (same.size() > 1) continue;
            if (store_)
              if (auto row = store_->find(key); row && row->status != "error") {
                keep(point, *row);
                continue;
              }
            return BatchJob{described(scenario, std::move(key), position_++), request_of(scenario), limits};
          }
          return std::nullopt;
        },
        [&](StoredResult row) {
          if (store_) store_->put(row);
          keep(of_key.at(row.key).front(), row);
        });
    std::vector<PlanMeasure> measures;
    for (const auto& [key, same] : of_key)
      for (const PlanPoint& point : same)
        if (!seen_.contains(point)) seen_[point] = seen_.at(same.front());
    for (const PlanPoint& point : points) measures.push_back(measure_of(point));
    return measures;
  }

  void keep(const PlanPoint& point, const StoredResult& row) {
    Seen seen{row, Json::parse(row.metrics), {}};
    simulated_s_ += row.status == "done" ? metric_of(seen.metrics, "sim_seconds") : 0;
    if (row.status == "done") {
      for (std::size_t i = 0; i < limitable_metrics.size(); ++i) {
        const double limit = spec_.constraints.limits[i], value = metric_of(seen.metrics, limitable_metrics[i].metric);
        if (!std::isnan(limit) && !(limitable_metrics[i].at_least ? value >= limit : value <= limit)) seen.missed.emplace_back(limitable_metrics[i].metric);
      }
      for (const Expression& expression : also_) {
        const bool holds = expression.holds([&](std::string_view name) -> ExpressionValue {
          const double value = metric_of(seen.metrics, name);
          if (std::isnan(value)) throw UserError("constraints.also: there is no metric " + std::string(name));
          return value;
        });
        if (!holds) seen.missed.push_back(expression.text());
      }
    }
    seen_[point] = std::move(seen);
  }

  PlanMeasure measure_of(const PlanPoint& point) const {
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

  const PlanSpec& spec_;
  const Space& space_;
  const Catalog& catalog_;
  Pool& pool_;
  Store* store_;
  std::vector<int> lanes_;
  std::vector<Expression> also_;
  std::vector<SweepPoint> deployments_;
  std::map<std::string, std::uint64_t> invalid_;
  std::map<PlanPoint, Seen> seen_;
  Plan plan_;
  std::uint64_t position_ = 0;
  double simulated_s_ = 0, rounds_ = 0;
};

Json row_json(const PlanRun& run, const PlanPoint& point) {
  Json row = Json::parse(result_json(run.seen(point).row, run.deployments()[point.deployment].values));
  row["lanes"] = run.lanes(point);
  row["score"] = run.score(point);
  row["simulated"] = point.thorough ? "long" : "short";
  return row;
}

// What the next step up would miss at the best deployment, and what giving some of it up would buy.
Json binding_json(const PlanRun& run, const PlanSpec& spec) {
  const PlanPoint best = run.plan().best;
  PlanPoint above = best;
  ++above.level;
  if (above.level >= run.lane_levels()) return {{"constraint", "lanes.to"}, {"note", "more lanes were not looked at"}};
  if (!run.all().contains(above)) above.thorough = false;
  if (!run.all().contains(above)) return nullptr;
  const Seen &here = run.seen(best), &there = run.seen(above);
  if (there.row.status != "done") return {{"constraint", "deployment"}, {"note", there.row.error}};
  if (there.missed.empty()) return {{"constraint", nullptr}, {"note", "more lanes meet every limit, but gain nothing"}};
  Json binding{{"constraint", there.missed[0]}, {"at", metric_of(here.metrics, there.missed[0])}, {"next_lanes", run.lanes(above)},
               {"next_value", metric_of(there.metrics, there.missed[0])}};
  for (std::size_t i = 0; i < limitable_metrics.size(); ++i)
    if (limitable_metrics[i].metric == there.missed[0]) binding["limit"] = spec.constraints.limits[i];
  // Shadow price: the slope between the two simulated points.
  const double change = metric_of(there.metrics, there.missed[0]) - metric_of(here.metrics, there.missed[0]);
  const double gain = run.score(above) / run.score(best) - 1;
  if (change != 0 && std::isfinite(change)) {
    binding["shadow_price"] = {{"per_unit", gain / std::abs(change)}, {"unit", "share of the objective per unit of the constraint given up"}};
    if (there.missed[0] == "p90_tok_s_user")
      binding["shadow_price"]["text"] = fmt::format("5 tok/s/user less would allow {:+.1f}%", 500 * gain / std::abs(change));
  }
  return binding;
}

// Feasible or not, points that no other beats in both throughput of the rack and speed per user.
Json front_json(const PlanRun& run) {
  std::vector<std::pair<PlanPoint, std::pair<double, double>>> points;
  for (const auto& [point, seen] : run.all()) {
    if (seen.row.status != "done" || (!point.thorough && run.all().contains({point.deployment, point.level, true}))) continue;
    points.push_back({point, {metric_of(seen.metrics, "total_tok_s_rack"), metric_of(seen.metrics, "p90_tok_s_user")}});
  }
  std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Json front = Json::array();
  double fastest = -1;
  for (const auto& [point, value] : points) {
    if (value.second <= fastest) continue;
    fastest = value.second;
    front.push_back(row_json(run, point));
  }
  return front;
}

void need_json(const PlanRun& run, const PlanSpec& spec, Json& out) {
  if (spec.load.lanes <= 0) return;
  const PlanPoint& best = run.plan().best;
  const double racks = std::ceil(spec.load.lanes / run.lanes(best));
  const double gpus = metric_of(run.seen(best).metrics, "rack_gpus");
  out["need"] = {{"lanes", spec.load.lanes}, {"lanes_per_rack", run.lanes(best)}, {"racks", racks}, {"spare_racks", spec.load.spare_racks},
                 {"gpus", (racks + spec.load.spare_racks) * gpus},
                 {"cost_usd_hour", (racks + spec.load.spare_racks) * gpus * metric_of(run.seen(best).metrics, "cost_usd_gpu_hour")}};
}

Json result_of(const PlanRun& run, const PlanSpec& spec, const Space& space) {
  const Plan& plan = run.plan();
  Json out{{"plan", spec.name}, {"objective", std::string(objectives[static_cast<std::size_t>(spec.objective)].name)}};
  out["best"] = plan.found ? row_json(run, plan.best) : Json(nullptr);
  if (plan.found) {
    const Scenario& base = run.deployments()[plan.best.deployment].scenario;
    out["best"]["prices"] = {{"list", base.prices.list.name}, {"period", base.prices.period == PricePeriod::peak ? "peak" : "off_peak"},
                             {"gpu", base.prices.gpu == GpuPriceKind::owning ? "owning" : "rental"}, {"gpu_source", base.rack.gpu.price_source}};
  }
  out["runner_up"] = plan.has_runner_up ? row_json(run, plan.runner_up) : Json(nullptr);
  if (plan.has_runner_up) {
    out["runner_up"]["behind"] = 1 - run.score(plan.runner_up) / run.score(plan.best);
    PlanPoint above = plan.runner_up;
    ++above.level;
    const auto next = run.all().find(above);
    if (next != run.all().end() && !next->second.missed.empty()) out["runner_up"]["stopped_by"] = next->second.missed[0];
  }
  out["binding"] = plan.found ? binding_json(run, spec) : Json(nullptr);
  if (plan.found) need_json(run, spec, out);
  out["front"] = front_json(run);
  out["search"] = {{"combinations", space.combinations()}, {"deployments", run.deployments().size()}, {"lane_counts", run.lane_levels()},
                   {"simulations", plan.runs}, {"pruned", plan.pruned}, {"invalid", plan.invalid}, {"out_of_runs", plan.out_of_runs},
                   {"simulated_s", run.simulated_s()}, {"exhaustive_s", run.exhaustive_s()}};
  return out;
}

void print_text(const Json& out) {
  const auto line = [](const char* what, const Json& row) {
    const Json& m = row["metrics"];
    fmt::print("{:<10} {}\n{:<10} {} lanes, {:.0f} tok/s/GPU deployed, {:.0f} tok/s/rack, P90 {:.1f} tok/s/user, TTFT P90 {:.2f} s, {:.4f} USD/Mtok\n", what,
               row["name"].get<std::string>(), "", row["lanes"].get<int>(), metric_of(m, "total_tok_s_gpu"), metric_of(m, "total_tok_s_rack"),
               metric_of(m, "p90_tok_s_user"), metric_of(m, "ttft_p90_s"), metric_of(m, "cost_usd_per_mtok"));
  };
  line("best", out["best"]);
  const auto band = [&](const char* metric, const char* label) {
    const Json& m = out["best"]["metrics"];
    const std::string low = std::string(metric) + "_lo", high = std::string(metric) + "_hi";
    if (m.contains(low)) fmt::print("{:<10} {} {:.1f} to {:.1f}\n", "", label, metric_of(m, low), metric_of(m, high));
  };
  band("total_tok_s_gpu", "tok/s/GPU, 10th to 90th percentile of the parameters' bands:");
  band("p90_tok_s_user", "P90 tok/s/user, the same:");
  if (!out["runner_up"].is_null()) {
    line("runner-up", out["runner_up"]);
    fmt::print("{:<10} {:.1f}% behind{}\n", "", 100 * out["runner_up"]["behind"].get<double>(),
               out["runner_up"].contains("stopped_by") ? ", stopped by " + out["runner_up"]["stopped_by"].get<std::string>() : "");
  }
  if (out["binding"].is_object()) fmt::print("{:<10} {}\n", "binding", out["binding"].dump());
  if (out.contains("need")) fmt::print("{:<10} {}\n", "need", out["need"].dump());
  fmt::print("front      tok/s/rack  P90 tok/s/user  TTFT P90 s  scenario\n");
  for (const Json& row : out["front"])
    fmt::print("{:>21.0f} {:>15.1f} {:>11.2f}  {}\n", metric_of(row["metrics"], "total_tok_s_rack"), metric_of(row["metrics"], "p90_tok_s_user"),
               metric_of(row["metrics"], "ttft_p90_s"), row["name"].get<std::string>());
}

int plan(const Arguments& arguments, const Program& program) {
  const Catalog catalog = program.catalog();
  ForkServer server(scenario_runner(catalog));
  const std::size_t jobs = arguments.jobs > 0 ? arguments.jobs : default_jobs();
  if (launch().rank != 0) {
    make_pool(server, jobs);
    return 0;
  }
  const auto [own, other] = split_sets(arguments.sets, {"name", "objective", "constraints", "lanes", "short_run", "long_run", "leaders", "most_runs", "load",
                                                        "base", "set", "axes", "conditions", "limits"});
  const PlanSpec spec = read_yaml_as<PlanSpec>(read_source(arguments.file), catalog.read_options(own));
  const Space space(spec.space, arguments.file, catalog, other);
  std::optional<Store> store;
  if (!arguments.out.empty())
    store.emplace(arguments.out, Store::Mode::write, [&](int process) {
      fmt::print(stderr, "rackcast: {} is being written by process {}; waiting for it\n", arguments.out, process);
    });
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<Pool> pool = make_pool(server, jobs);
  PlanRun run(spec, space, catalog, *pool, store ? &*store : nullptr);
  run.run();
  const Json out = result_of(run, spec, space);
  fmt::print(stderr, "{}: {} deployments x {} lane counts, {} simulations of {:.0f} s in all (exhaustive: {:.0f} s), {} pruned, in {:.1f} s\n", spec.name,
             run.deployments().size(), run.lane_levels(), run.plan().runs, run.simulated_s(), run.exhaustive_s(), run.plan().pruned,
             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  for (const auto& [reason, count] : run.invalid()) fmt::print(stderr, "  {} x {}\n", count, reason);
  if (arguments.json) fmt::print("{}\n", out.dump(1));
  if (!run.plan().found) throw BoundMissed("no deployment meets the limits at any of the lane counts");
  if (!arguments.json) print_text(out);
  return 0;
}

}  // namespace

Action setup_plan(CLI::App& app, const Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("plan", arguments->file, "plan file")->required()->type_name("PLAN.yaml");
  app.add_option("--out", arguments->out, "keeps every simulation; the next plan goes on from it")->type_name("RESULTS.sqlite");
  app.add_option("--jobs", arguments->jobs, "scenarios at once in each process (default: the cores)")->type_name("N");
  add_sets(app, arguments->sets);
  app.add_flag("--json", arguments->json, "the plan as one JSON object");
  return [arguments, &program] { return plan(*arguments, program); };
}

}  // namespace rackcast
