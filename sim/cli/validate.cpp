// rackcast validate [SUITE...] [--data FILE.csv]: predicted against published.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/recipes.hpp"
#include "analysis/validation.hpp"
#include "sim/base/error.hpp"
#include "sim/base/schema_yaml.hpp"
#include "sim/cli/published_scenario.hpp"
#include "sim/cli/run_many.hpp"
#include "sim/cli/suite.hpp"
#include "sim/cli/verbs.hpp"
#include "sim/cost/step_case.hpp"
#include "sim/cost/step_model.hpp"
#include "sim/spec/scenario.hpp"

namespace rackcast {

namespace {

struct ValidateOptions {
  std::vector<std::string> suites, data, where, sets;
  int jobs = 0;
  int most_rows = 0;
  double bound = 0;
  bool json = false;
};

// A scenario to run and the items whose figure it gives.
struct Job {
  RunRequest request;
  std::vector<std::pair<std::size_t, std::string>> items;  // index into the suite's items, metric of the run
};

double part_of(const StepTime& t, const std::string& part) {
  const double main_s = t.total_s - t.draft_s - t.host_s;
  if (part == "moe") return t.moe_s;
  if (part == "rest") return main_s - t.moe_s;
  return part == "total" ? t.total_s : main_s;
}

ValidationItem step_item(const StepFigure& f, const Catalog& catalog) {
  ValidationItem item{.id = f.id, .metric = "step", .published = f.published.value(), .predicted = {}, .lo = {}, .hi = {},
                      .fitted = f.fitted, .refused = "", .citation = f.citation, .note = ""};
  try {
    const std::vector<CaseItem> cases = parse_case(f.case_text);
    StepContext context;
    context.model = read_yaml_as<ModelSpec>(catalog.find("models", f.model), catalog.read_options());
    context.gpu = read_yaml_as<GpuSpec>(catalog.find("gpus", f.gpu), catalog.read_options());
    context.costs = read_yaml_as<CostSpec>(catalog.find("costs", f.gpu), catalog.read_options());
    context.ranks = f.dep > 0 ? f.dep : f.tp;
    context.tensor_parallel = f.tp > 0;
    context.draft_tokens = draft_tokens_of(cases);
    const RankBatch batch = batch_of(cases, context.model, CasePhase::automatic);
    const std::vector<RankBatch> ranks(f.dep > 0 ? static_cast<std::size_t>(f.dep) : 1, batch);
    item.predicted = part_of(make_step_model(context)->step(ranks), f.part);
  } catch (const UserError& error) {
    item.refused = error.what();
  }
  return item;
}

std::string data_folder() {
  const char* folder = std::getenv("RACKCAST_DATA");
  return folder ? folder : "";
}

// Recipes and published rows that complete what a table leaves out; none where the data folder lacks them.
struct Companions {
  std::vector<Recipe> recipes;
  std::vector<PublishedRow> rows;
};

Companions companions() {
  Companions found;
  const std::string folder = data_folder();
  if (folder.empty()) return found;
  const auto has = [](const std::string& path) { return std::ifstream(path).good(); };
  const std::string recipes = folder + "/published/agentx_recipes.csv", points = folder + "/published/published_points.csv";
  if (has(recipes)) found.recipes = read_recipes(CsvTable::read(recipes));
  if (has(points)) found.rows = read_published(CsvTable::read(points));
  return found;
}

// `gpu=gb300`, `model=R1`, `mode=disagg`: all must hold.
bool selected(const PublishedRow& row, const std::vector<std::string>& where) {
  for (const std::string& rule : where) {
    const auto eq = rule.find('=');
    if (eq == std::string::npos) throw UserError("--where takes NAME=VALUE, with gpu, model, framework, precision, mode, workload or id; not '" + rule + "'");
    const std::string name = rule.substr(0, eq), value = rule.substr(eq + 1);
    const std::string actual = name == "gpu" ? row.gpu : name == "framework" ? row.framework : name == "precision" ? row.precision
                               : name == "workload" ? row.workload : name == "mode" ? (row.disaggregated ? "disagg" : "agg") : "";
    if (name == "model" || name == "id") {
      if ((name == "id" ? row.id : row.model).find(value) == std::string::npos) return false;
    } else if (actual.empty() && name != "framework" && name != "precision") {
      throw UserError("--where knows gpu, model, framework, precision, mode, workload and id; not '" + name + "'");
    } else if (actual != value) {
      return false;
    }
  }
  return true;
}

void add_rows(std::vector<PublishedRow> rows, const ValidateOptions& options, const Catalog& catalog, const Companions& known,
              ValidationSuite& suite, std::vector<Job>& jobs) {
  int taken = 0;
  for (PublishedRow& row : without_duplicates(std::move(rows))) {
    if (!selected(row, options.where) || (options.most_rows > 0 && taken >= options.most_rows)) continue;
    ++taken;
    const std::string filled = complete_row(row, known.recipes, known.rows);
    const PublishedScenario scenario = scenario_of(row, catalog);
    Job job;
    job.request = {row.id, scenario.yaml, options.sets};
    const auto figure = [&](const char* metric, const char* of_run, const std::optional<double>& published) {
      if (!published || *published <= 0) return;
      job.items.emplace_back(suite.items.size(), of_run);
      suite.items.push_back({.id = row.id, .metric = metric, .published = *published, .predicted = {}, .lo = {}, .hi = {}, .fitted = false,
                             .refused = scenario.refused, .citation = row.citation, .note = filled + (scenario.note.empty() ? "" : "; " + scenario.note)});
    };
    figure("tpot", "tpot_mean_s", row.tpot_s);
    figure("ttft", "ttft_mean_s", row.ttft_s);
    figure("total_tok_s_gpu", "total_tok_s_gpu", row.total_tok_s_gpu);
    figure("p90_tok_s_user", "p90_tok_s_user", row.p90_tok_s_user);
    if (scenario.refused.empty() && !job.items.empty()) jobs.push_back(std::move(job));
  }
}

bool wanted(const PublishedRow& row, const SuiteSpec& spec) {
  if (!spec.workload.empty() && row.workload != spec.workload) return false;
  return spec.models.empty() || std::any_of(spec.models.begin(), spec.models.end(), [&](const std::string& part) { return row.model.find(part) != std::string::npos; });
}

// Fills predictions from the metrics of finished runs.
void run_jobs(const std::vector<Job>& jobs, const ValidateOptions& options, const Catalog& catalog, ValidationSuite& suite) {
  std::vector<RunRequest> requests;
  for (const Job& job : jobs) requests.push_back(job.request);
  const std::vector<RunReply> replies = run_many(requests, catalog, options.jobs, "validate " + suite.name);
  for (std::size_t i = 0; i < jobs.size(); ++i)
    for (const auto& [index, metric] : jobs[i].items) {
      ValidationItem& item = suite.items[index];
      if (!replies[i].error.empty()) {
        item.refused = replies[i].error;
        continue;
      }
      const auto& metrics = replies[i].metrics;
      const auto get = [&](const std::string& key) -> std::optional<double> {
        if (!metrics.contains(key) || !metrics[key].is_number()) return std::nullopt;
        return metrics[key].get<double>();
      };
      item.predicted = get(metric);
      if (!item.predicted) item.refused = "the run gave no " + metric;
      item.lo = get(metric + "_lo");
      item.hi = get(metric + "_hi");
    }
}

ValidationSuite run_suite(const SuiteSpec& spec, const ValidateOptions& options, const Catalog& catalog) {
  ValidationSuite suite{spec.name, {}};
  std::vector<Job> jobs;
  for (const StepFigure& figure : spec.steps) suite.items.push_back(step_item(figure, catalog));
  for (const RunFigure& figure : spec.runs) {
    Job job;
    job.request = {figure.id, "base: " + figure.scenario + "\n", figure.sets};
    job.request.sets.insert(job.request.sets.end(), options.sets.begin(), options.sets.end());
    job.items.emplace_back(suite.items.size(), figure.metric);
    suite.items.push_back({.id = figure.id, .metric = figure.metric, .published = figure.published, .predicted = {}, .lo = {}, .hi = {},
                           .fitted = figure.fitted, .refused = "", .citation = figure.citation, .note = ""});
    jobs.push_back(std::move(job));
  }
  if (!spec.table.empty()) {
    if (data_folder().empty()) {
      fmt::print(stderr, "{}: its table {} is not read, RACKCAST_DATA is not set\n", spec.name, spec.table);
    } else {
      std::vector<PublishedRow> rows = read_published(CsvTable::read(data_folder() + "/" + spec.table));
      std::erase_if(rows, [&](const PublishedRow& row) { return !wanted(row, spec); });
      add_rows(std::move(rows), options, catalog, companions(), suite, jobs);
    }
  }
  run_jobs(jobs, options, catalog, suite);
  return suite;
}

int validate(const ValidateOptions& options, const Catalog& catalog) {
  std::vector<ValidationSuite> suites;
  std::vector<std::string> names = options.suites;
  if (names.empty() && options.data.empty()) names = catalog.names("suites");
  for (const std::string& name : names)
    suites.push_back(run_suite(read_yaml_as<SuiteSpec>(catalog.find("suites", name), catalog.read_options()), options, catalog));
  for (const std::string& file : options.data) {
    ValidationSuite suite{file, {}};
    std::vector<Job> jobs;
    add_rows(read_published(CsvTable::read(file)), options, catalog, companions(), suite, jobs);
    run_jobs(jobs, options, catalog, suite);
    suites.push_back(std::move(suite));
  }
  if (options.json) fmt::print("{}\n", validation_json(suites).dump(1));
  else fmt::print("{}", validation_table(suites));
  if (options.bound > 0)
    for (const ValidationSuite& suite : suites)
      for (const char* metric : {"step", "tpot", "ttft", "total_tok_s_gpu", "p90_tok_s_user"})
        if (const MetricErrors e = errors_of(suite.items, metric); e.n > 0 && e.median_abs > options.bound)
          throw BoundMissed(fmt::format("{}: median error of {} is {:.1f}%, above {:.1f}%", suite.name, metric, 100 * e.median_abs, 100 * options.bound));
  return 0;
}

}  // namespace

Action setup_validate(CLI::App& app, const Program& program) {
  const auto options = std::make_shared<ValidateOptions>();
  app.add_option("SUITE", options->suites, "suites to run; all without --data when none is named (list suites)")->type_name("");
  app.add_option("--data", options->data, "table of published results to predict, with the columns of silicon_sample.csv or published_points.csv")->type_name("FILE.csv");
  app.add_option("--where", options->where, "only rows with gpu=, model=, framework=, precision=, mode=agg|disagg, workload= or id=")->type_name("NAME=VALUE");
  app.add_option("--most", options->most_rows, "only the first N rows of a table")->type_name("N");
  app.add_option("--bound", options->bound, "exit with 1 when a median error is above this fraction")->type_name("X");
  app.add_option("--jobs", options->jobs, "processes at once; 0: one a core")->type_name("N");
  app.add_flag("--json", options->json, "print JSON");
  add_sets(app, options->sets);
  return [options, &program] { return validate(*options, program.catalog()); };
}

}  // namespace rackcast
