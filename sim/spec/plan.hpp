// A plan file: what to make best, within which limits, over which deployments.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/spec/sweep.hpp"

namespace rackcast {

enum class Objective { throughput, revenue, cost_per_mtok, gpus };
extern const std::vector<Choice> objectives;

// A metric that may be limited, and on which side.
struct Limitable {
  std::string_view metric;
  bool at_least;
};
extern const std::vector<Limitable> limitable_metrics;

struct ConstraintsSpec {
  std::vector<double> limits;      // by limitable_metrics; NaN: none
  std::vector<std::string> also;   // expressions over metrics
  ConstraintsSpec();
};
void fields(Visitor& v, ConstraintsSpec& c);

struct LoadNeed {
  double lanes = 0;        // how many must be served
  std::vector<double> day; // lanes by hour, UTC, Monday to Friday: 24 numbers; lanes is then the most of them
  int spare_racks = 0;     // on top, for a failure
  double most() const;
};
void fields(Visitor& v, LoadNeed& l);

struct PlanSpec {
  std::string name;
  Objective objective = Objective::throughput;
  ConstraintsSpec constraints;
  AxisRange lanes{64, 16384, 0, 1.1892071150027210667, ""};  // 2^(1/4)
  Seconds short_run{120}, long_run{600};
  int leaders = 3;
  int most_runs = 0;       // 0: no limit
  int bands = 8;           // draws of the cost parameters for the best and the runner-up; 0: none
  LoadNeed load;
  SpaceSpec space;         // deployments; concurrency is the plan's own axis
};
void fields(Visitor& v, PlanSpec& p);

// The lane counts to choose from, whole and ascending.
std::vector<int> lane_counts(const AxisRange& range);

}  // namespace rackcast
