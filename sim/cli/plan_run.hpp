// One plan: the space, what was simulated of it, and what came out.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/planner.hpp"
#include "sim/cli/plan_bounds.hpp"
#include "sim/engine/batch.hpp"
#include "sim/spec/plan.hpp"

namespace rackcast {

double metric_of(const nlohmann::ordered_json& metrics, std::string_view name);  // NaN: not there

// One simulated point: lanes on a deployment.
struct Seen {
  StoredResult row;
  nlohmann::ordered_json metrics;
  std::vector<std::string> missed;  // limits that do not hold
};

class PlanRun {
 public:
  PlanRun(const PlanSpec& spec, const Space& space, const Catalog& catalog, Pool& pool, Store* store);
  void run();

  const PlanSpec& spec() const { return spec_; }
  const Space& space() const { return space_; }
  const Plan& plan() const { return plan_; }
  const Seen& seen(const PlanPoint& point) const { return seen_.at(point); }
  const std::map<PlanPoint, Seen>& all() const { return seen_; }
  // The long simulation of a point where there is one, else the short one; null: neither.
  const Seen* look(std::size_t deployment, std::size_t level) const;
  const std::vector<SweepPoint>& deployments() const { return deployments_; }
  const std::map<std::string, std::uint64_t>& invalid() const { return invalid_; }
  std::size_t lane_levels() const { return lanes_.size(); }
  int lanes(const PlanPoint& point) const { return lanes_[point.level]; }
  // No score of the deployment is higher (infinite: unknown): what its engines can compute, for the load as seen.
  double most(std::size_t deployment) const;
  // What the objective is at a point, higher is better; cost counts as its inverse.
  double score(const PlanPoint& point) const;

  double simulated_s() const { return simulated_s_; }
  double exhaustive_s() const { return static_cast<double>(deployments_.size() * lanes_.size()) * spec_.long_run.value(); }

  Scenario scenario_of(const PlanPoint& point) const;
  // Simulates scenarios side by side; their rows, in order.
  std::vector<StoredResult> simulate(const std::vector<Scenario>& scenarios);

  // Simulates points and keeps what was seen.
  std::vector<PlanMeasure> measure(const std::vector<PlanPoint>& points);

 private:
  void keep(const PlanPoint& point, const StoredResult& row);
  PlanMeasure measure_of(const PlanPoint& point) const;

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
  TokenMix mix_;
  Plan plan_;
  std::uint64_t position_ = 0;
  double simulated_s_ = 0, rounds_ = 0;
};

// plan_result.cpp: the answer as JSON, and as text.
nlohmann::ordered_json plan_json(PlanRun& run);
void print_plan(const nlohmann::ordered_json& plan);

// plan_need.cpp: racks and GPUs for `load`, and a day of it; null: no load was asked for.
nlohmann::ordered_json need_json(PlanRun& run);
void print_need(const nlohmann::ordered_json& need);

}  // namespace rackcast
