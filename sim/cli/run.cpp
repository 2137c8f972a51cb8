// rackcast run SCENARIO.yaml: simulates one scenario; a table for people, or JSON.
#include "sim/engine/run.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sim/base/text_plot.hpp"
#include "sim/cli/option_checks.hpp"
#include "sim/cli/progress.hpp"
#include "sim/cli/run_table.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/cli/verbs.hpp"

namespace rackcast {

namespace {

struct RunArguments {
  std::string scenario;
  std::vector<std::string> sets;
  std::string out_dir;
  std::uint64_t seed = 0;
  bool has_seed = false, json = false;
  double series_s = 0;
  std::string trace, trace_window;
};

EventTraceOptions trace_options(const RunArguments& arguments) {
  EventTraceOptions options;
  options.path = arguments.trace;
  const std::string& window = arguments.trace_window;
  if (window.empty()) return options;
  try {
    std::size_t used = 0;
    options.from_s = std::stod(window, &used);
    if (window.at(used) != ':') throw std::invalid_argument(window);
    const std::string to = window.substr(used + 1);
    options.to_s = std::stod(to, &used);
    if (used != to.size()) throw std::invalid_argument(window);
  } catch (const std::logic_error&) {
    throw UserError("--timeline-window: must be FROM:TO in seconds, such as 0:60");
  }
  return options;
}

// Percentiles of what users feel, on one axis.
std::string latency_plot(const nlohmann::ordered_json& latency, const Terminal& terminal) {
  std::vector<PlotRange> ranges;
  for (const auto& [name, key] : {std::pair{"first token", "ttft_s"}, std::pair{"between tokens", "inter_token_s"}, std::pair{"end to end", "e2e_s"}}) {
    const auto& p = latency.at(key);
    if (p.at("count").get<double>() == 0) continue;
    ranges.push_back({name, p.at("p10").get<double>(), p.at("p50").get<double>(), p.at("p90").get<double>(), p.at("p99").get<double>()});
  }
  return draw_ranges(ranges, {terminal.columns, 0, terminal.colour});
}

int run(const RunArguments& arguments, const Catalog& catalog) {
  Scenario scenario = read_scenario(arguments.scenario, catalog, arguments.sets);
  if (arguments.has_seed) scenario.seed = arguments.seed;
  RunOptions options;
  options.out_dir = arguments.out_dir;
  options.series_interval_s = arguments.series_s;
  options.event_trace = trace_options(arguments);
  nlohmann::ordered_json result;
  {
    Progress bar("run");
    options.progress = [&](double share) { bar.update(share); };
    result = run_scenario(scenario, catalog, options);
  }
  if (const Terminal terminal = stdout_terminal(); terminal.is_one && !arguments.json)
    fmt::print("{}\n", latency_plot(result.at("breakdown").at("latency"), terminal));
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
  app.add_option("--out", arguments->out_dir, "folder that keeps resolved.yaml, requests.csv, manifest.json, result.json, time_series.csv")->type_name("DIR");
  app.add_flag("--json", arguments->json, "print the result as JSON");
  app.add_option("--time-series,--time-line", arguments->series_s, "sample engines, cache and links at this interval of simulated seconds, into time_series.csv of --out")->check(number_from(0.001, 1e6))->type_name("S");
  CLI::Option* trace = app.add_option("--timeline", arguments->trace, "a trace of steps, requests and KV movements for ui.perfetto.dev, at most 100 MB")->type_name("FILE");
  app.add_option("--timeline-window", arguments->trace_window, "its part of the measured window, in seconds; default 0:60")->needs(trace)->type_name("FROM:TO");
  return [arguments, seed, &program] {
    arguments->has_seed = seed->count() > 0;
    return run(*arguments, program.catalog());
  };
}

}  // namespace rackcast
