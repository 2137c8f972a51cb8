// Scenario in, result out; free of SimGrid. One run per process with `network: simgrid` (SimGrid's clock is global):
// callers that need several fork. `network: fluid` has no such limit.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <functional>
#include <string>

#include "sim/spec/scenario.hpp"

namespace rackcast {

class TraceCache;

struct RunOptions {
  std::string out_dir;                                       // keeps resolved.yaml, requests.csv, manifest.json, result.json; empty: nothing
  std::function<void(double share_done)> progress;           // empty: silent
  double time_line_interval_s = 0;                           // 0: no time line in the breakdown
  TraceCache* traces = nullptr;                              // where to find the trace, or leave it; null: read it
};

// The JSON object of the CLI contract: {"manifest", "metrics", "breakdown"}; byte-identical for equal scenario and seed
// but for manifest.timing.
nlohmann::ordered_json run_scenario(const Scenario& scenario, const Catalog& catalog, const RunOptions& options);

}  // namespace rackcast
