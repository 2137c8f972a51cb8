// What a plan says, as JSON and as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/cli/plan_run.hpp"
#include "sim/engine/result_range.hpp"

namespace rackcast {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t front_points = 8;  // simulated long for the front, at most

Json row_json(const PlanRun& run, const PlanPoint& point) {
  Json row = Json::parse(result_json(run.seen(point).row, run.deployments()[point.deployment].values));
  row["lanes"] = run.lanes(point);
  row["score"] = run.score(point);
  row["simulated"] = point.thorough ? "long" : "short";
  return row;
}

double limit_of(const PlanRun& run, const std::string& metric) {
  for (std::size_t i = 0; i < limitable_metrics.size(); ++i)
    if (limitable_metrics[i].metric == metric) return run.spec().constraints.limits[i];
  return std::numeric_limits<double>::quiet_NaN();
}

// What the next step up in lanes would miss.
Json stop_json(const PlanRun& run, const PlanPoint& point) {
  if (point.level + 1 >= run.lane_levels()) return {{"constraint", "lanes.to"}, {"text", "more lanes were not looked at"}};
  const Seen* next = run.look(point.deployment, point.level + 1);
  if (!next) return {{"constraint", nullptr}, {"text", "more lanes were not simulated"}};
  if (next->row.status != "done") return {{"constraint", "deployment"}, {"text", next->row.error}};
  if (next->missed.empty()) return {{"constraint", nullptr}, {"text", "more lanes meet every limit, but gain nothing"}};
  const std::string& missed = next->missed[0];
  const int lanes = run.lanes({point.deployment, point.level + 1, true});
  Json stop{{"constraint", missed}, {"limit", limit_of(run, missed)}, {"at", metric_of(run.seen(point).metrics, missed)},
            {"next_lanes", lanes}, {"next_value", metric_of(next->metrics, missed)}};
  stop["text"] = std::isnan(limit_of(run, missed)) ? fmt::format("{} does not hold at {} lanes", missed, lanes)
                                                   : fmt::format("{} is {:.4g} here and {:.4g} at {} lanes; the limit is {:.4g}", missed, metric_of(run.seen(point).metrics, missed),
                                                                 metric_of(next->metrics, missed), lanes, limit_of(run, missed));
  if (next->missed.size() > 1) stop["also"] = std::vector<std::string>(next->missed.begin() + 1, next->missed.end());
  return stop;
}

// Shadow price: the slope between the best point and the next step up.
void add_shadow_price(const PlanRun& run, Json& stop) {
  const PlanPoint best = run.plan().best;
  const double change = metric_of(stop, "next_value") - metric_of(stop, "at");
  if (change == 0 || !std::isfinite(change)) return;
  PlanPoint above{best.deployment, best.level + 1, run.all().contains({best.deployment, best.level + 1, true})};
  const double per_unit = (run.score(above) / run.score(best) - 1) / std::abs(change);
  stop["shadow_price"] = {{"per_unit", per_unit}, {"unit", "share of the objective per unit of the constraint given up"}};
  const std::string name = stop["constraint"];
  const bool speed = name.ends_with("tok_s_user");
  if (speed || name.ends_with("_s"))
    stop["shadow_price"]["text"] = fmt::format("{} would allow {:+.1f}%", speed ? "5 tok/s/user less" : "1 s more", (speed ? 500 : 100) * per_unit);
}

// Points that no other beats in both throughput of the rack and speed per user, best throughput first.
std::vector<PlanPoint> front_of(const PlanRun& run, bool thorough) {
  std::vector<std::pair<PlanPoint, std::pair<double, double>>> points;
  for (const auto& [point, seen] : run.all())
    if (seen.row.status == "done" && point.thorough == thorough)
      points.push_back({point, {metric_of(seen.metrics, "total_tok_s_rack"), metric_of(seen.metrics, "p90_tok_s_user")}});
  std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<PlanPoint> front;
  double fastest = -1;
  for (const auto& [point, value] : points) {
    if (!(value.second > fastest)) continue;
    fastest = value.second;
    front.push_back(point);
  }
  return front;
}

// Long and short simulations do not compare (a window that starts with a burst weighs it by its length), so the front of
// the short ones is simulated again.
Json front_json(PlanRun& run) {
  const std::vector<PlanPoint> found = front_of(run, false);
  std::vector<PlanPoint> wanted;
  for (std::size_t i = 0; i < std::min(front_points, found.size()); ++i) {
    PlanPoint point = found[found.size() <= front_points ? i : i * (found.size() - 1) / (front_points - 1)];
    point.thorough = true;
    if (!run.all().contains(point)) wanted.push_back(point);
  }
  run.measure(wanted);
  Json front = Json::array();
  for (const PlanPoint& point : front_of(run, true)) {
    front.push_back(row_json(run, point));
    front.back()["missed"] = run.seen(point).missed;
  }
  return front;
}

// The winner and the runner-up under draws of the cost parameters: how sure the answer is.
void add_bands(PlanRun& run, Json& out) {
  if (run.spec().bands == 0) return;
  std::vector<Scenario> scenarios;
  std::vector<const char*> places;
  for (const auto& [place, point] : {std::pair{"best", run.plan().best}, std::pair{"runner_up", run.plan().runner_up}}) {
    if (out[place].is_null()) continue;
    scenarios.push_back(run.scenario_of(point));
    scenarios.back().uncertainty = run.spec().bands;
    places.push_back(place);
  }
  const std::vector<StoredResult> rows = run.simulate(scenarios);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].status != "done") continue;
    const Json metrics = Json::parse(rows[i].metrics);
    for (const auto& [name, value] : metrics.items())
      if (name.ends_with("_lo") || name.ends_with("_hi")) out[places[i]]["metrics"][name] = value;
  }
  out["bands"] = {{"draws", run.spec().bands}, {"text", "10th to 90th percentile over draws of the cost files' parameters"}};
}

}  // namespace

Json plan_json(PlanRun& run) {
  const Plan& plan = run.plan();
  Json out{{"plan", run.spec().name}, {"objective", std::string(objectives[static_cast<std::size_t>(run.spec().objective)].name)}};
  out["best"] = plan.found ? row_json(run, plan.best) : Json(nullptr);
  out["runner_up"] = plan.has_runner_up ? row_json(run, plan.runner_up) : Json(nullptr);
  if (plan.has_runner_up) {
    out["runner_up"]["behind"] = 1 - run.score(plan.runner_up) / run.score(plan.best);
    out["runner_up"]["why"] = stop_json(run, plan.runner_up);
  }
  out["binding"] = plan.found ? stop_json(run, plan.best) : Json(nullptr);
  if (plan.found) {
    add_shadow_price(run, out["binding"]);
    const Scenario& base = run.deployments()[plan.best.deployment].scenario;
    out["best"]["prices"] = {{"list", base.prices.list.name}, {"list_source", base.prices.list.source}, {"period", base.prices.period == PricePeriod::peak ? "peak" : "off_peak"},
                             {"gpu", base.prices.gpu == GpuPriceKind::owning ? "owning" : "rental"}, {"gpu_source", base.rack.gpu.price_source}};
    if (const Json need = need_json(run); !need.is_null()) out["need"] = need;
  }
  out["front"] = front_json(run);
  out["search"] = {{"combinations", run.space().combinations()}, {"deployments", run.deployments().size()}, {"lane_counts", run.lane_levels()},
                   {"simulations", plan.runs}, {"pruned", plan.pruned}, {"never_simulated", plan.unseen}, {"invalid", plan.invalid},
                   {"out_of_runs", plan.out_of_runs}, {"simulated_s", run.simulated_s()}, {"exhaustive_s", run.exhaustive_s()}};
  Json bounds = Json::array();
  for (std::size_t d = 0; d < run.deployments().size(); ++d) {
    Json row{{"axes", Json::object()}, {"most", run.most(d)}};
    for (const auto& [key, value] : run.deployments()[d].values) row["axes"][key] = value;
    bounds.push_back(std::move(row));
  }
  out["search"]["bounds"] = std::move(bounds);
  if (plan.found) add_bands(run, out);
  return out;
}

void print_plan(const Json& out) {
  const auto line = [](const char* what, const Json& row) {
    const Json& m = row["metrics"];
    fmt::print("{:<10} {}\n{:<10} {} lanes: {:.0f} tok/s per deployed GPU, {:.0f} tok/s/rack, P90 {:.1f} tok/s/user, TTFT P90 {:.2f} s, {:.4f} USD/Mtok\n", what,
               row["name"].get<std::string>(), "", row["lanes"].get<int>(), metric_of(m, "total_tok_s_gpu"), metric_of(m, "total_tok_s_rack"),
               metric_of(m, "p90_tok_s_user"), metric_of(m, "ttft_p90_s"), metric_of(m, "cost_usd_per_mtok"));
    if (const std::string remark = range_remark(metric_of(m, "outside_range")); !remark.empty()) fmt::print("{:<10} note: {}\n", "", remark);
    if (!m.contains("total_tok_s_gpu_lo")) return;
    fmt::print("{:<10} band: {:.0f} to {:.0f} tok/s per GPU, P90 {:.1f} to {:.1f} tok/s/user, TTFT P90 {:.2f} to {:.2f} s\n", "", metric_of(m, "total_tok_s_gpu_lo"),
               metric_of(m, "total_tok_s_gpu_hi"), metric_of(m, "p90_tok_s_user_lo"), metric_of(m, "p90_tok_s_user_hi"), metric_of(m, "ttft_p90_s_lo"),
               metric_of(m, "ttft_p90_s_hi"));
  };
  line("best", out["best"]);
  fmt::print("{:<10} id {}\n", "", out["best"]["id"].get<std::string>());
  const Json &prices = out["best"]["prices"], &binding = out["binding"];
  fmt::print("{:<10} USD: GPU-hours {} ({}); tokens by list {}, {}\n", "", prices["gpu"].get<std::string>(), prices["gpu_source"].get<std::string>(),
             prices["list"].get<std::string>(), prices["period"].get<std::string>());
  fmt::print("binding    {}\n", binding["text"].get<std::string>());
  if (binding.contains("shadow_price") && binding["shadow_price"].contains("text"))
    fmt::print("{:<10} shadow price: {}\n", "", binding["shadow_price"]["text"].get<std::string>());
  if (!out["runner_up"].is_null()) {
    line("runner-up", out["runner_up"]);
    fmt::print("{:<10} {:.1f}% behind: {}\n", "", 100 * out["runner_up"]["behind"].get<double>(), out["runner_up"]["why"]["text"].get<std::string>());
  }
  if (out.contains("need")) print_need(out["need"]);
  fmt::print("front      tok/s/rack  P90 tok/s/user  TTFT P90 s  scenario (* meets every limit)\n");
  for (const Json& row : out["front"])
    fmt::print("{:>21.0f} {:>15.1f} {:>11.2f} {} {}\n", metric_of(row["metrics"], "total_tok_s_rack"), metric_of(row["metrics"], "p90_tok_s_user"),
               metric_of(row["metrics"], "ttft_p90_s"), row["missed"].empty() ? "*" : " ", row["name"].get<std::string>());
}

}  // namespace rackcast
