#include "analysis/planner.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

namespace rackcast {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

// One deployment: the limits hold up to `low` and do not from `high` on.
struct Bracket {
  long low = -1, high = 0;
  long step = 1;              // of the next look beyond what is known; doubles
  double cap = unlimited;     // of its score below `high`
  bool closed = false;
};

class Planner {
 public:
  Planner(const PlannerOptions& options, const Measure& measure) : options_(options), measure_(measure) {}

  Plan run() {
    brackets_.assign(options_.deployments, Bracket{-1, levels(), 1, unlimited, levels() == 0});
    start_ = levels() / 2;
    search(pilots());
    for (std::size_t d = 0; options_.most && d < brackets_.size(); ++d) brackets_[d].cap = std::min(brackets_[d].cap, options_.most(d));
    std::vector<std::size_t> all(options_.deployments);
    std::iota(all.begin(), all.end(), std::size_t{0});
    search(all);
    settle_leaders();
    choose();
    return std::move(plan_);
  }

 private:
  long levels() const { return static_cast<long>(options_.lanes.size()); }

  std::vector<std::size_t> pilots() {
    const std::size_t n = options_.deployments;
    std::vector<std::size_t> chosen;
    if (n > 0) chosen.push_back(n / 3);
    if (n > 1) chosen.push_back(std::max(2 * n / 3, n / 3 + 1));
    for (const std::size_t d : chosen) brackets_[d].step = 2;  // nothing says yet where its limit lies
    return chosen;
  }

  void search(const std::vector<std::size_t>& deployments) {
    while (round(deployments)) {
    }
  }

  // The fewest lanes at which any deployment could beat the best so far. All see one load: what its lanes ask does not
  // depend on who serves them.
  long needed() const {
    if (most_per_lane_ <= 0) return 0;
    const auto enough = std::find_if(options_.lanes.begin(), options_.lanes.end(), [&](double lanes) { return lanes * most_per_lane_ > best_; });
    return enough - options_.lanes.begin();
  }

  std::optional<long> next_level(std::size_t deployment) {
    Bracket& bracket = brackets_[deployment];
    if (bracket.closed) return std::nullopt;
    bracket.closed = bracket.low + 1 >= bracket.high;
    if (bracket.closed) return std::nullopt;
    const long need = needed();
    if (need >= bracket.high || bracket.cap <= best_) {
      if (deployment != best_deployment_) ++plan_.pruned;
      if (bracket.low < 0 && bracket.high == levels()) ++plan_.unseen;
      bracket.closed = true;
      return std::nullopt;
    }
    long next = start_;
    if (bracket.low >= 0 && bracket.high < levels()) {
      next = bracket.low + (bracket.high - bracket.low) / 2;
    } else if (bracket.low >= 0) {
      next = std::min(bracket.low + bracket.step, levels() - 1);
      bracket.step *= 2;
    } else if (bracket.high < levels()) {
      next = std::max(bracket.high - bracket.step, 0L);
      bracket.step *= 2;
    }
    return std::max(next, need);  // below `need` it cannot win
  }

  bool round(const std::vector<std::size_t>& deployments) {
    std::vector<PlanPoint> points;
    for (const std::size_t d : deployments)
      if (const auto level = next_level(d)) points.push_back({d, static_cast<std::size_t>(*level), false});
    if (!look(points)) return false;
    for (const PlanPoint& point : points) {
      Bracket& bracket = brackets_[point.deployment];
      const PlanMeasure& seen = plan_.measured.at(point);
      const auto level = static_cast<long>(point.level);
      if (!seen.valid) {
        ++plan_.invalid;
        bracket.closed = true;
        continue;
      }
      most_per_lane_ = std::max(most_per_lane_, seen.most_per_lane);
      if (!seen.feasible) {
        bracket.high = std::min(bracket.high, level);
        if (options_.fall_allowed < 1) bracket.cap = std::min(bracket.cap, seen.score / (1 - options_.fall_allowed));
        continue;
      }
      bracket.low = std::max(bracket.low, level);
      if (seen.score <= best_) continue;
      best_ = seen.score;
      best_deployment_ = point.deployment;
      start_ = level;
    }
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
    double best = -unlimited;
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
  double best_ = -unlimited, most_per_lane_ = 0;
  std::size_t best_deployment_ = 0;
  long start_ = 0;            // where a deployment of which nothing is known is looked at first
  Plan plan_;
};

}  // namespace

Plan make_plan(const PlannerOptions& options, const Measure& measure) { return Planner(options, measure).run(); }

}  // namespace rackcast
