#include "sim/engine/run.hpp"

#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <map>

#include "sim/base/output.hpp"
#include "sim/engine/result.hpp"
#include "sim/engine/result_range.hpp"

namespace rackcast {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::uint64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

// The metrics under parameter draw `draw` of the cost files. Draws use the fluid network: it gives the same results as
// SimGrid, of which a process can run only one.
Metrics metrics_of_draw(const Scenario& central, const Catalog& catalog, int draw, TraceCache& traces) {
  Scenario scenario = central;
  scenario.uncertainty = 0;
  scenario.network = NetworkKind::fluid;
  DeploymentSpec& deployment = scenario.deployment;
  for (std::optional<EngineSpec>* pool : {&deployment.prefill, &deployment.decode, &deployment.aggregated})
    if (*pool) (*pool)->cost = ((*pool)->cost.empty() ? scenario.rack.gpu.name : (*pool)->cost) + "@" + std::to_string(draw);
  BuiltRun built = build_run(scenario, catalog, &traces);
  Recorder recorder({}, {});
  const std::unique_ptr<Network> network = make_network(scenario.network);
  const SimulationOutcome outcome = Simulation(built.options, *built.load, *network, recorder).run();
  built.context.sim_seconds = outcome.end_s;
  built.context.outside_range = outside_share(outcome);
  return metrics_of(recorder.statistics, built.context);
}

// name_lo and name_hi: 10th and 90th percentile of a metric over the draws.
void add_bands(const Scenario& scenario, const Catalog& catalog, TraceCache& traces, const std::function<void(double)>& progress, Json& metrics) {
  std::map<std::string, Samples> draws;
  for (int draw = 1; draw <= scenario.uncertainty; ++draw) {
    for (const auto& [name, value] : metrics_of_draw(scenario, catalog, draw, traces)) if (!std::isnan(value)) draws[name].add(value);
    if (progress) progress(static_cast<double>(draw) / scenario.uncertainty);
  }
  for (const auto& [name, values] : draws) {
    metrics[name + "_lo"] = values.percentile(0.1);
    metrics[name + "_hi"] = values.percentile(0.9);
  }
}

}  // namespace

Json run_scenario(const Scenario& scenario, const Catalog& catalog, const RunOptions& options) {
  const Clock::time_point start = Clock::now();
  TraceCache own_traces;
  TraceCache& traces = options.traces ? *options.traces : own_traces;
  BuiltRun built = build_run(scenario, catalog, &traces);
  built.options.sample_interval_s = options.series_interval_s;
  const double build_s = seconds_since(start);
  std::string rows;
  if (!options.out_dir.empty()) {
    make_output_folder(options.out_dir);
    write_output_file(options.out_dir + "/resolved.yaml", yaml_of(scenario));
    rows = options.out_dir + "/requests.csv";
  }
  Recorder recorder(rows, options.progress);
  if (options.series_interval_s > 0) {
    if (options.out_dir.empty()) throw UserError("--time-series: needs --out, the folder where time_series.csv goes");
    recorder.time_series = std::make_unique<TimeSeries>(options.out_dir + "/time_series.csv", engine_names(built));
  }
  if (!options.event_trace.path.empty()) recorder.event_trace = std::make_unique<EventTrace>(options.event_trace, engine_names(built));
  const std::unique_ptr<Network> network = make_network(scenario.network);
  const Clock::time_point simulation_start = Clock::now();
  const SimulationOutcome outcome = Simulation(built.options, *built.load, *network, recorder).run();
  const double simulation_s = seconds_since(simulation_start);
  recorder.close();
  built.context.sim_seconds = outcome.end_s;
  built.context.outside_range = outside_share(outcome);
  if (outcome.refused > 0)
    built.notes.push_back(std::to_string(outcome.refused) + " requests were refused: they are longer than a rank's whole KV memory");
  if (outcome.finished_measured == 0) built.notes.push_back("no measured request ended: every figure is 0");
  if (recorder.event_trace && recorder.event_trace->truncated())
    built.notes.push_back(fmt::format("{} reached its limit of {} bytes and holds only the first part of its window", options.event_trace.path, options.event_trace.limit_bytes));
  for (std::string& note : range_notes(built, outcome)) built.notes.push_back(std::move(note));
  const Metrics metrics = metrics_of(recorder.statistics, built.context);
  Json result;
  result["manifest"] = manifest_json(scenario, built, network->describe());
  result["metrics"] = metrics_json(metrics);
  if (scenario.uncertainty > 0) add_bands(scenario, catalog, traces, options.progress, result["metrics"]);
  result["breakdown"] = breakdown_json(built, outcome, recorder, metrics);
  result["manifest"]["timing"] = {{"build_s", build_s}, {"simulation_s", simulation_s}, {"total_s", seconds_since(start)}, {"peak_bytes", peak_bytes()}};
  if (!options.out_dir.empty()) {
    write_output_file(options.out_dir + "/manifest.json", result["manifest"].dump(2) + "\n");
    write_output_file(options.out_dir + "/result.json", result.dump(2) + "\n");
  }
  return result;
}

}  // namespace rackcast
