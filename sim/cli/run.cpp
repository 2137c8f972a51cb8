// rackcast run SCENARIO.yaml: simulates one scenario; a table for people, or JSON.
#include "sim/engine/run.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sim/cli/progress.hpp"
#include "sim/cli/run_table.hpp"
#include "sim/cli/verbs.hpp"

namespace rackcast {

namespace {

struct RunArguments {
  std::string scenario;
  std::vector<std::string> sets;
  std::string out_dir;
  std::uint64_t seed = 0;
  bool has_seed = false, json = false;
  double time_line_s = 0;
};

int run(const RunArguments& arguments, const Catalog& catalog) {
  Scenario scenario = read_scenario(arguments.scenario, catalog, arguments.sets);
  if (arguments.has_seed) scenario.seed = arguments.seed;
  RunOptions options;
  options.out_dir = arguments.out_dir;
  options.time_line_interval_s = arguments.time_line_s;
  nlohmann::ordered_json result;
  {
    Progress bar("run");
    options.progress = [&](double share) { bar.update(share); };
    result = run_scenario(scenario, catalog, options);
  }
  fmt::print("{}", arguments.json ? result.dump(2) + "\n" : run_table(result));
  const auto& timing = result.at("manifest").at("timing");
  fmt::print(stderr, "simulated {:.0f} s in {:.2f} s, {:.0f} MiB\n", result.at("metrics").at("sim_seconds").get<double>(),
             timing.at("total_s").get<double>(), timing.at("peak_bytes").get<double>() / (1024.0 * 1024.0));
  return 0;
}

}  // namespace

Action setup_run(CLI::App& app, const Program& program) {
  const auto arguments = std::make_shared<RunArguments>();
  app.add_option("SCENARIO", arguments->scenario, "scenario file")->required()->type_name("");
  add_sets(app, arguments->sets);
  CLI::Option* seed = add_seed(app, arguments->seed, "seed of every random draw; default: the scenario's");
  app.add_option("--out", arguments->out_dir, "folder that keeps resolved.yaml, requests.csv, manifest.json, result.json")->type_name("DIR");
  app.add_flag("--json", arguments->json, "print the result as JSON");
  app.add_option("--time-line", arguments->time_line_s, "sample every engine at this interval, in simulated seconds")->check(CLI::NonNegativeNumber)->type_name("S");
  return [arguments, seed, &program] {
    arguments->has_seed = seed->count() > 0;
    return run(*arguments, program.catalog());
  };
}

}  // namespace rackcast
