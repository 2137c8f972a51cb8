// Scenario in, result out; free of SimGrid. One run per process with `network: simgrid` (SimGrid's clock is global):
// callers that need several fork. `network: fluid` has no such limit.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <functional>
#include <string>

#include "sim/engine/event_trace.hpp"
#include "sim/spec/scenario.hpp"

namespace rackcast {

class TraceCache;

struct RunOptions {
  std::string out_dir;                                       // keeps resolved.yaml, requests.csv, manifest.json, result.json and time_series.csv; empty: nothing
  std::function<void(double share_done)> progress;           // empty: silent
  double series_interval_s = 0;                           // 0: no time line; needs out_dir
  EventTraceOptions event_trace{};                                // a trace for viewers; no path: none
  TraceCache* traces = nullptr;                              // where to find the trace, or leave it; null: read it
};

// The JSON object of the CLI contract: {"manifest", "metrics", "breakdown"}; byte-identical for equal scenario and seed
// but for manifest.timing. UserError when a file cannot be written.
nlohmann::ordered_json run_scenario(const Scenario& scenario, const Catalog& catalog, const RunOptions& options);

}  // namespace rackcast
