#include "analysis/planner.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace rackcast {
namespace {

// One deployment: the limits hold up to `low` and do not from `high` on.
struct Bracket {
  long low = -1, high = 0;
  bool closed = false;
  double most_per_lane = 0;
};

class Planner {
 public:
  Planner(const PlannerOptions& options, const Measure& measure) : options_(options), measure_(measure) {}

  Plan run() {
    brackets_.assign(options_.deployments, Bracket{-1, levels(), levels() == 0, 0});
    while (round(false)) {
    }
    settle_leaders();
    choose();
    return std::move(plan_);
  }

 private:
  long levels() const { return static_cast<long>(options_.lanes.size()); }

  // The fewest lanes at which this deployment could beat the best so far.
  long needed(const Bracket& bracket) const {
    if (bracket.most_per_lane <= 0) return 0;
    const auto enough = std::find_if(options_.lanes.begin(), options_.lanes.end(), [&](double lanes) { return lanes * bracket.most_per_lane > best_; });
    return enough - options_.lanes.begin();
  }

  std::optional<long> next_level(Bracket& bracket) {
    if (bracket.closed) return std::nullopt;
    const long need = needed(bracket);
    if (need >= bracket.high && bracket.low + 1 < bracket.high) {
      ++plan_.pruned;
      bracket.closed = true;
    }
    if (bracket.low + 1 >= bracket.high) bracket.closed = true;
    if (bracket.closed) return std::nullopt;
    if (need > bracket.low + 1) return need;  // a miss here drops the deployment
    return bracket.low + (bracket.high - bracket.low) / 2;
  }

  bool round(bool thorough) {
    std::vector<PlanPoint> points;
    for (std::size_t d = 0; d < brackets_.size(); ++d)
      if (const auto level = next_level(brackets_[d])) points.push_back({d, static_cast<std::size_t>(*level), thorough});
    if (!look(points)) return false;
    for (const PlanPoint& point : points) {
      Bracket& bracket = brackets_[point.deployment];
      const PlanMeasure& seen = plan_.measured.at(point);
      const auto level = static_cast<long>(point.level);
      if (!seen.valid) {
        ++plan_.invalid;
        bracket.closed = true;
      } else if (seen.feasible) {
        bracket.low = std::max(bracket.low, level);
      } else {
        bracket.high = std::min(bracket.high, level);
      }
      if (seen.valid && seen.most_per_lane > 0) bracket.most_per_lane = std::max(bracket.most_per_lane, seen.most_per_lane);
    }
    for (const PlanPoint& point : points)
      if (const PlanMeasure& seen = plan_.measured.at(point); seen.feasible) best_ = std::max(best_, seen.score);
    // All deployments see one load: what its lanes ask does not depend on who serves them.
    double most = 0;
    for (const Bracket& bracket : brackets_) most = std::max(most, bracket.most_per_lane);
    for (Bracket& bracket : brackets_) bracket.most_per_lane = most;
    return true;
  }

  // Measures what is not known yet. False when nothing was asked or the budget is spent.
  bool look(std::vector<PlanPoint>& points) {
    std::erase_if(points, [&](const PlanPoint& p) { return plan_.measured.contains(p); });
    if (points.empty()) return false;
    if (options_.most_runs > 0 && plan_.runs + points.size() > options_.most_runs) {
      plan_.out_of_runs = true;
      points.resize(options_.most_runs - plan_.runs);
      if (points.empty()) return false;
    }
    const std::vector<PlanMeasure> seen = measure_(points);
    for (std::size_t i = 0; i < points.size(); ++i) plan_.measured[points[i]] = seen[i];
    plan_.runs += points.size();
    return true;
  }

  double score_of(const Bracket& bracket, std::size_t deployment) const {
    double best = -std::numeric_limits<double>::infinity();
    for (long level = 0; level <= bracket.low; ++level) {
      const auto seen = plan_.measured.find({deployment, static_cast<std::size_t>(level), false});
      if (seen != plan_.measured.end() && seen->second.feasible) best = std::max(best, seen->second.score);
    }
    return best;
  }

  // Long simulations around each leader's limit, up or down until it is bracketed again.
  void settle_leaders() {
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < brackets_.size(); ++d)
      if (brackets_[d].low >= 0) order.push_back(d);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return score_of(brackets_[a], a) > score_of(brackets_[b], b); });
    if (order.size() > options_.leaders) order.resize(options_.leaders);
    struct Leader { std::size_t deployment; long at; int direction; };  // 0: first look
    std::vector<Leader> leaders;
    leaders.reserve(order.size());
    for (const std::size_t d : order) leaders.push_back({d, brackets_[d].low, 0});
    while (!leaders.empty()) {
      std::vector<PlanPoint> points;
      points.reserve(leaders.size());
      for (const Leader& leader : leaders) points.push_back({leader.deployment, static_cast<std::size_t>(leader.at), true});
      if (!look(points)) return;
      std::vector<Leader> rest;
      for (Leader leader : leaders) {
        const auto seen = plan_.measured.find({leader.deployment, static_cast<std::size_t>(leader.at), true});
        if (seen == plan_.measured.end() || !seen->second.valid) continue;
        const int step = seen->second.feasible ? 1 : -1;
        if (leader.direction != 0 && step != leader.direction) continue;  // bracketed
        leader.direction = step;
        leader.at += step;
        if (leader.at >= 0 && leader.at < levels()) rest.push_back(leader);
      }
      leaders = std::move(rest);
    }
  }

  void choose() {
    const auto better = [&](const PlanPoint& point, const PlanMeasure& seen, bool have, const PlanPoint& than) {
      static_cast<void>(point);
      return seen.feasible && (!have || seen.score > plan_.measured.at(than).score);
    };
    for (const auto& [point, seen] : plan_.measured)
      if (point.thorough && better(point, seen, plan_.found, plan_.best)) plan_.best = point, plan_.found = true;
    for (const auto& [point, seen] : plan_.measured)
      if (point.thorough && plan_.found && point.deployment != plan_.best.deployment && better(point, seen, plan_.has_runner_up, plan_.runner_up))
        plan_.runner_up = point, plan_.has_runner_up = true;
  }

  const PlannerOptions& options_;
  const Measure& measure_;
  std::vector<Bracket> brackets_;
  double best_ = -std::numeric_limits<double>::infinity();
  Plan plan_;
};

}  // namespace

Plan make_plan(const PlannerOptions& options, const Measure& measure) { return Planner(options, measure).run(); }

}  // namespace rackcast
