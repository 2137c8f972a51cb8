// The search behind `rackcast plan`: for every deployment the most lanes at which the limits still hold, by bisection on
// simulations, and the best deployment at that point. It knows no scenario: what is measured comes through a function.
//
// Two pilot deployments are searched first; all others start at the pilots' best lane count.
// Taken for granted: (1) with more lanes a deployment never meets a limit again that it has missed, and (2) with more
// lanes its score falls by no more than `fall_allowed` (overload wastes that much at most).
// A deployment is dropped when it cannot beat the best so far:
// - a closed loop cannot get more than its lanes ask of an instant server, so it has to hold the limits at the fewest
//   lanes whose whole demand would beat the best;
// - where it misses a limit, its score is (by 2) a bound on its score at fewer lanes;
// - `most` may know a bound from what its engines can compute.
// None of these removes an optimum as long as (1) and (2) hold.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace rackcast {

struct PlanPoint {
  std::size_t deployment = 0;
  std::size_t level = 0;   // index into the lane counts
  bool thorough = false;   // long simulation
  auto operator<=>(const PlanPoint&) const = default;
};

struct PlanMeasure {
  bool valid = false;      // ran; false: cannot be or failed, which drops the deployment
  bool feasible = false;   // all limits hold
  double score = 0;        // higher is better
  double most_per_lane = 0;  // score per lane that an instant server would reach; 0: unknown, nothing is pruned by it
};

struct PlannerOptions {
  std::size_t deployments = 0;
  std::vector<double> lanes;     // ascending
  std::size_t leaders = 3;       // looked at again with long simulations
  std::size_t most_runs = 0;     // 0: no limit
  double fall_allowed = 0.1;
  std::function<double(std::size_t deployment)> most = {};  // no score of it is higher; asked after the pilots; empty: unknown
};

// All points of a round at once, so that they can run side by side; the answer does not depend on how many do.
using Measure = std::function<std::vector<PlanMeasure>(const std::vector<PlanPoint>&)>;

struct Plan {
  bool found = false;
  PlanPoint best, runner_up;     // runner_up: of another deployment
  bool has_runner_up = false;
  bool out_of_runs = false;
  std::size_t runs = 0, invalid = 0;
  std::size_t pruned = 0;        // deployments dropped by a bound,
  std::size_t unseen = 0;        // those of them that were never simulated
  std::map<PlanPoint, PlanMeasure> measured;
};

Plan make_plan(const PlannerOptions& options, const Measure& measure);

}  // namespace rackcast
