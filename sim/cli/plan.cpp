// rackcast plan: the best deployment of a plan file's space within its limits, and what stands in the way of a better one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/base/text_plot.hpp"
#include "sim/cli/mpi_pool.hpp"
#include "sim/cli/plan_run.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/cli/verbs.hpp"

namespace rackcast {

namespace {

struct Arguments {
  std::string file, out;
  std::vector<std::string> sets;
  std::size_t jobs = 0;
  bool json = false;
};

// Everything simulated, and what nothing beats.
std::string front_plot(const PlanRun& run, const nlohmann::ordered_json& front, const Terminal& terminal) {
  const auto place = [](const nlohmann::ordered_json& metrics, bool marked) {
    return PlotPoint{metric_of(metrics, "p90_tok_s_user"), metric_of(metrics, "total_tok_s_rack"), marked};
  };
  std::vector<PlotPoint> points;
  for (const auto& [point, seen] : run.all())
    if (seen.row.status == "done" && (point.thorough || !run.all().contains({point.deployment, point.level, true}))) points.push_back(place(seen.metrics, false));
  for (const nlohmann::ordered_json& row : front) points.push_back(place(row["metrics"], true));
  return draw_points(points, "P90 tok/s/user", "tok/s/rack", {terminal.columns, 16, terminal.colour});
}

int plan(const Arguments& arguments, const Program& program) {
  const Catalog catalog = program.catalog();
  ForkServer server(scenario_runner(catalog));
  const std::size_t jobs = arguments.jobs > 0 ? arguments.jobs : default_jobs();
  if (launch().rank != 0) {
    make_pool(server, jobs);
    return 0;
  }
  const auto [own, other] = split_sets(arguments.sets, {"name", "objective", "constraints", "lanes", "short_run", "long_run", "leaders", "most_runs", "bands", "load",
                                                        "base", "set", "axes", "conditions", "limits"});
  const PlanSpec spec = read_yaml_as<PlanSpec>(read_source(arguments.file), catalog.read_options(own));
  const Space space(spec.space, arguments.file, catalog, other);
  std::optional<Store> store;
  if (!arguments.out.empty())
    store.emplace(arguments.out, Store::Mode::write, [&](int process) {
      fmt::print(stderr, "rackcast: {} is being written by process {}; waiting for it\n", arguments.out, process);
    });
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<Pool> pool = make_pool(server, jobs);
  PlanRun run(spec, space, catalog, *pool, store ? &*store : nullptr);
  run.run();
  const nlohmann::ordered_json out = plan_json(run);
  fmt::print(stderr, "{}: {} deployments x {} lane counts: {} simulations, {:.0f} s in all (exhaustive: {:.0f} s); {} dropped by bounds, {} of them unseen; {:.1f} s\n",
             spec.name, run.deployments().size(), run.lane_levels(), run.plan().runs, run.simulated_s(), run.exhaustive_s(), run.plan().pruned,
             run.plan().unseen, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  for (const auto& [reason, count] : run.invalid()) fmt::print(stderr, "  {} x {}\n", count, reason);
  if (arguments.json) fmt::print("{}\n", out.dump(1));
  if (!run.plan().found) throw BoundMissed("no deployment meets the limits at any of the lane counts");
  if (arguments.json) return 0;
  print_plan(out);
  if (const Terminal terminal = stdout_terminal(); terminal.is_one) fmt::print("\n{}", front_plot(run, out["front"], terminal));
  return 0;
}

}  // namespace

Action setup_plan(CLI::App& app, const Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("plan", arguments->file, "plan file")->required()->type_name("PLAN.yaml");
  app.add_option("--out", arguments->out, "keeps every simulation; the next plan goes on from it")->type_name("RESULTS.sqlite");
  app.add_option("--jobs", arguments->jobs, "scenarios at once in each process (default: the cores)")->check(CLI::Range(0, 4096))->type_name("N");
  add_sets(app, arguments->sets);
  app.add_flag("--json", arguments->json, "the plan as one JSON object");
  return [arguments, &program] { return plan(*arguments, program); };
}

}  // namespace rackcast
