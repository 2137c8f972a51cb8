#include "sim/engine/run.hpp"

#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "sim/engine/result.hpp"

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

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.flush();
  if (!file) throw UserError(path.string() + ": cannot be written");
}

}  // namespace

Json run_scenario(const Scenario& scenario, const Catalog& catalog, const RunOptions& options) {
  const Clock::time_point start = Clock::now();
  BuiltRun built = build_run(scenario, catalog, options.traces);
  built.options.sample_interval_s = options.time_line_interval_s;
  const double build_s = seconds_since(start);
  std::string rows;
  if (!options.out_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.out_dir, error);
    if (error) throw UserError(options.out_dir + ": cannot be made: " + error.message());
    write_file(std::filesystem::path(options.out_dir) / "resolved.yaml", yaml_of(scenario));
    rows = (std::filesystem::path(options.out_dir) / "requests.csv").string();
  }
  Recorder recorder(rows, options.progress);
  const std::unique_ptr<Network> network = make_network(scenario.network);
  const Clock::time_point simulation_start = Clock::now();
  const SimulationOutcome outcome = Simulation(built.options, *built.load, *network, recorder).run();
  const double simulation_s = seconds_since(simulation_start);
  recorder.close();
  built.context.sim_seconds = outcome.end_s;
  if (outcome.refused > 0)
    built.notes.push_back(std::to_string(outcome.refused) + " requests were refused: they are longer than a rank's whole KV memory");
  if (outcome.finished_measured == 0) built.notes.push_back("no measured request ended: every figure is 0");
  const Metrics metrics = metrics_of(recorder.statistics, built.context);
  Json result;
  result["manifest"] = manifest_json(scenario, built, network->describe());
  result["metrics"] = metrics_json(metrics);
  result["breakdown"] = breakdown_json(built, outcome, recorder, metrics);
  result["manifest"]["timing"] = {{"build_s", build_s}, {"simulation_s", simulation_s}, {"total_s", seconds_since(start)}, {"peak_bytes", peak_bytes()}};
  if (!options.out_dir.empty()) {
    write_file(std::filesystem::path(options.out_dir) / "manifest.json", result["manifest"].dump(2) + "\n");
    write_file(std::filesystem::path(options.out_dir) / "result.json", result.dump(2) + "\n");
  }
  return result;
}

}  // namespace rackcast
