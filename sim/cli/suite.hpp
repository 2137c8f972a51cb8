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

// What the suite promises; see ValidationBound.
struct BoundFigure {
  std::string metric;
  std::vector<std::string> tags;
  double median = 0, coverage = 0;
  bool enforced = false;
};
void fields(Visitor& v, BoundFigure& b);

// Kernels of one GPU predicted from the fits of another.
struct TransferFigure {
  std::string from, to;
};
void fields(Visitor& v, TransferFigure& t);

struct SuiteSpec {
  std::string name, about;
  std::vector<StepFigure> steps;
  std::vector<RunFigure> runs;
  std::string table;                 // file under RACKCAST_DATA, of one of the two published layouts
  std::string workload;              // of the table: fixed or agentx; empty: both
  std::vector<std::string> models;   // of the table: parts of the published name; empty: all
  std::vector<std::string> where;    // of the table: as --where
  std::vector<std::string> fitted;   // of the table: "ID METRIC" that a parameter was fitted on
  std::vector<std::string> kernels;  // tables of kernel times under RACKCAST_DATA
  std::vector<TransferFigure> transfer;  // of the kernel tables; none: each GPU from its own cost file
  std::vector<BoundFigure> bounds;
};
void fields(Visitor& v, SuiteSpec& s);

}  // namespace rackcast
