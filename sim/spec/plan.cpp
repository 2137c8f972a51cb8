#include "sim/spec/plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rackcast {

const std::vector<Choice> objectives = {{"throughput", "most tokens per second and GPU of the whole rack"},
                                        {"revenue", "most revenue per hour and GPU of the whole rack, at the scenario's price list"},
                                        {"cost_per_mtok", "least GPU cost of a million tokens, all GPUs of the rack paid"},
                                        {"gpus", "fewest GPUs that serve load.lanes: most lanes per GPU"}};

const std::vector<Limitable> limitable_metrics = {
    {"p50_tok_s_user", true}, {"p90_tok_s_user", true}, {"p99_tok_s_user", true}, {"e2e_norm_p90_tok_s_user", true},
    {"ttft_mean_s", false},   {"ttft_p50_s", false},    {"ttft_p90_s", false},    {"ttft_p99_s", false},
    {"tpot_mean_s", false},   {"tpot_p50_s", false},    {"tpot_p90_s", false},    {"e2e_mean_s", false},
    {"cache_hit_total", true}, {"total_tok_s_gpu", true}, {"output_tok_s_gpu", true}, {"cost_usd_per_mtok", false}};

ConstraintsSpec::ConstraintsSpec() : limits(limitable_metrics.size(), std::numeric_limits<double>::quiet_NaN()) {}

void fields(Visitor& v, ConstraintsSpec& c) {
  for (std::size_t i = 0; i < limitable_metrics.size(); ++i) {
    // 0 means no limit, so that every value can be written and read.
    double limit = std::isnan(c.limits[i]) ? 0 : c.limits[i];
    v.field(limitable_metrics[i].metric, limit, limitable_metrics[i].at_least ? "at least; 0: no limit" : "at most; 0: no limit").require(limit >= 0, "must be >= 0");
    c.limits[i] = limit > 0 ? limit : std::numeric_limits<double>::quiet_NaN();
  }
  v.field("also", c.also, "expressions over metrics that must hold, such as cache_hit_gpu > 0.5");
}

void fields(Visitor& v, LoadNeed& l) {
  v.field("lanes", l.lanes, "lanes that must be served; 0: the most of day, or none asked for").require(l.lanes >= 0, "must be >= 0");
  v.field("day", l.day, "lanes by hour of the day, UTC: 24 numbers; what a day earns, costs and burns is worked out from them")
      .require(l.day.empty() || (l.day.size() == 24 && std::ranges::all_of(l.day, [](double lanes) { return lanes >= 0; })), "must be 24 numbers >= 0");
  v.field("spare_racks", l.spare_racks, "racks on top, so that as many may fail").require(l.spare_racks >= 0, "must be >= 0");
}

double LoadNeed::most() const { return day.empty() ? lanes : std::max(lanes, *std::ranges::max_element(day)); }

void fields(Visitor& v, PlanSpec& p) {
  v.field("name", p.name, "shown in results").required();
  v.choice("objective", p.objective, objectives, "what to make best");
  v.group("constraints", p.constraints, "limits on metrics");
  v.group("lanes", p.lanes, "lane counts to choose from");
  v.field("short_run", p.short_run, "simulated window while searching").require(p.short_run.value() > 0, "must be > 0 s");
  v.field("long_run", p.long_run, "simulated window for the leaders").require(p.long_run >= p.short_run, "must be >= short_run");
  v.field("leaders", p.leaders, "deployments looked at again with long runs").require(p.leaders >= 1, "must be >= 1");
  v.field("most_runs", p.most_runs, "budget of simulations; 0: none").require(p.most_runs >= 0, "must be >= 0");
  v.field("bands", p.bands, "draws of the cost files' parameters for the best and the runner-up; 0: no bands").require(p.bands >= 0, "must be >= 0");
  v.group("load", p.load, "what must be served");
  v.rule("load", p.objective != Objective::gpus || p.load.most() > 0, "objective gpus needs load.lanes or load.day");
  space_fields(v, p.space);
}

std::vector<int> lane_counts(const AxisRange& range) {
  std::vector<int> counts;
  for (int i = 0; i < 100'000; ++i) {
    const double at = range.step > 0 ? range.from + i * range.step : range.from * std::pow(range.factor, i);
    if (at > range.to * (1 + 1e-9)) break;
    const int whole = static_cast<int>(std::lround(at));
    if (whole >= 1 && (counts.empty() || whole > counts.back())) counts.push_back(whole);
  }
  return counts;
}

}  // namespace rackcast
