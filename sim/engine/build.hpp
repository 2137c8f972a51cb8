// From a scenario to what the simulation runs on: pools with their step models and memory, topology, policies, load.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analysis/metrics.hpp"
#include "sim/cost/memory.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/spec/scenario.hpp"
#include "sim/trace/agentx.hpp"
#include "sim/trace/named_trace.hpp"

namespace rackcast {

struct BuiltPool {
  std::string name;                   // prefill, decode, aggregated
  EngineSpec spec;
  std::unique_ptr<StepModel> model;
  MemoryPlan memory;
};

// What runs can share of their loads: traces by the name that scenarios give them, each read or generated once, the plans
// of their sessions, and what lanes ask of an instant server. A process that forks runs makes them first: all runs share
// the pages.
class TraceCache {
 public:
  std::shared_ptr<const NamedTrace> get(const std::string& name);
  std::shared_ptr<const SessionPlans> plans(const std::string& name);
  double lane_demand_tok_s(const std::string& name, const AgentxOptions& options, double duration_s);
  void prepare(const Scenario& scenario);  // all that a run of it will ask for

 private:
  std::map<std::string, std::shared_ptr<const NamedTrace>> traces_;
  std::map<std::string, std::shared_ptr<const SessionPlans>> plans_;
  std::map<std::string, double> demands_;
};

// Everything that a run borrows from; keep it alive as long as the simulation.
struct BuiltRun {
  std::vector<BuiltPool> pools;
  std::vector<std::unique_ptr<StepModel>> slowed;  // engines with part of their NVLink bandwidth
  SimulationOptions options;
  std::vector<std::shared_ptr<const Trace>> traces;  // recorded loads of the mix; the load borrows them
  std::unique_ptr<Load> load;
  MetricContext context;
  std::vector<std::string> notes;     // fallbacks and other things that a reader of the result must know
};

// Throws UserError when something does not fit: memory line by line, or engines on the rack.
BuiltRun build_run(const Scenario& scenario, const Catalog& catalog, TraceCache* traces = nullptr);

// Throws what build_run would, short of reading the trace: whether it is there is all that is looked at.
void check_run(const Scenario& scenario, const Catalog& catalog);

void add_failures(const Scenario& scenario, const Catalog& catalog, BuiltRun& run);

void add_expert_options(const Scenario& scenario, BuiltRun& run);  // build_experts.cpp

bool uses_trace(const WorkloadSpec& workload);
// The file that a trace's name stands for: a path, or the recorded sessions under RACKCAST_DATA. Empty: the generated load.
std::string trace_path(const std::string& name);

}  // namespace rackcast
