// rackcast export: launch files for serving engines from a scenario, a run's folder or a row of a result store.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "sim/base/output.hpp"
#include "sim/cli/export_plan.hpp"
#include "sim/cli/stored_scenario.hpp"
#include "sim/cli/verbs.hpp"

namespace rackcast {

namespace {

struct Format {
  std::string_view name;
  std::string (*write)(const ServePlan& plan);
};
constexpr Format formats[] = {{"vllm", export_vllm}, {"dynamo", export_dynamo}, {"srt-slurm", export_srt_slurm}};

struct ExportOptions {
  std::string what, format, model, out;
  std::vector<std::string> sets;
};

int write(const ExportOptions& options, const Catalog& catalog) {
  const auto* const format = std::ranges::find(formats, std::string_view(options.format), &Format::name);
  if (format == std::end(formats)) throw UserError(fmt::format("--format {} is not known: vllm, dynamo or srt-slurm", quote_input(options.format)));
  const Scenario scenario = read_scenario(scenario_source(options.what), catalog, options.sets);
  const std::string text = format->write(serve_plan(scenario, options.model));
  if (options.out.empty()) fmt::print("{}", text);
  else {
    refuse_overwriting(options.out, {options.what});
    write_output_file(options.out, text);
  }
  return 0;
}

}  // namespace

Action setup_export(CLI::App& app, const Program& program) {
  const auto options = std::make_shared<ExportOptions>();
  app.add_option("WHAT", options->what, "folder of a run, RESULTS.sqlite:ID, or a scenario file")->required()->type_name("");
  app.add_option("--format", options->format, "vllm, dynamo or srt-slurm")->required()->type_name("NAME");
  app.add_option("--model-path", options->model, "what the engine loads, when it is not the published name")->type_name("PATH");
  app.add_option("--out", options->out, "file to write; stdout without it")->type_name("FILE");
  add_sets(app, options->sets);
  return [options, &program] { return write(*options, program.catalog()); };
}

}  // namespace rackcast
