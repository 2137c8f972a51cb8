// A validation suite: published figures with their citation and what reproduces each. Files in scenarios/suites/.
#pragma once
#include <string>
#include <vector>

#include "sim/base/schema.hpp"

namespace rackcast {

// One step of one engine: model, GPU, engine shape, case grammar of `step`.
struct StepFigure {
  std::string id, citation, model, gpu, case_text;
  int dep = 0, tp = 0;
  std::string part = "main";   // main, moe, rest (main - moe), total
  Seconds published{};
  bool fitted = false;
};
void fields(Visitor& v, StepFigure& f);

// One metric of one scenario.
struct RunFigure {
  std::string id, citation, scenario, metric;  // scenario: name under scenarios/; metric: of a run's JSON
  std::vector<std::string> sets;
  double published = 0;
  bool fitted = false;
};
void fields(Visitor& v, RunFigure& f);

struct SuiteSpec {
  std::string name, about;
  std::vector<StepFigure> steps;
  std::vector<RunFigure> runs;
  std::string table;                 // file under RACKCAST_DATA, of one of the two published layouts
  std::string workload;              // of the table: fixed or agentx; empty: both
  std::vector<std::string> models;   // of the table: parts of the published name; empty: all
};
void fields(Visitor& v, SuiteSpec& s);

}  // namespace rackcast
