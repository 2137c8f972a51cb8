// rackcast validate [SUITE...] [--data FILE.csv]: predicted against published.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/recipes.hpp"
#include "analysis/validation.hpp"
#include "sim/base/error.hpp"
#include "sim/base/output.hpp"
#include "sim/base/schema_yaml.hpp"
#include "sim/cli/published_scenario.hpp"
#include "sim/cli/run_many.hpp"
#include "sim/cli/suite.hpp"
#include "sim/cli/validate_kernels.hpp"
#include "sim/cli/validate_predict.hpp"
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
  int draws = 0;
  double bound = 0;
  std::string predict, compare, costs, scenarios;
  bool json = false;
};

// A scenario to run and the items whose figure it gives.
struct Job {
  RunRequest request;
  std::vector<std::pair<std::size_t, std::string>> items;  // index into the suite's items, metric of the run
  bool published = false, disaggregated = false;          // a row of a table
  double users = 0;
  std::string framework{};
  PublishedScenario waits{};  // its waits outside the run
};

double part_of(const StepTime& t, const std::string& part) {
  const double main_s = t.total_s - t.draft_s - t.host_s;
  if (part == "moe") return t.moe_s;
  if (part == "rest") return main_s - t.moe_s;
  return part == "total" ? t.total_s : main_s;
}

ValidationItem step_item(const StepFigure& f, const Catalog& catalog) {
  ValidationItem item{.id = f.id, .metric = "step", .published = f.published.value(), .predicted = {}, .lo = {}, .hi = {},
                      .fitted = f.fitted, .refused = "", .citation = f.citation, .note = "", .tags = {"gpu=" + f.gpu}};
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
    const auto model = make_step_model(context);
    item.predicted = part_of(model->step(ranks), f.part);
    const std::vector<OperatorCost> operators = model->operators(ranks);
    RangeTally outside;
    add_outside(outside, operators, 1);
    item.outside_range = outside.seconds();
  } catch (const UserError& error) {
    item.refused = error.what();
  }
  return item;
}

std::string data_folder() {
  const char* folder = std::getenv("RACKCAST_DATA");
  return folder ? folder : "";
}

// Recipes and fully stated published rows complete what a table leaves out; none where the data folder lacks them.
std::vector<Recipe> known_recipes() {
  std::vector<Recipe> recipes;
  const std::string folder = data_folder();
  if (folder.empty()) return recipes;
  const auto has = [](const std::string& path) { return std::ifstream(path).good(); };
  if (const std::string path = folder + "/published/agentx_recipes.csv"; has(path)) recipes = read_recipes(CsvTable::read(path));
  for (const char* table : {"/published/published_points.csv", "/published/silicon_sample.csv"})
    if (const std::string path = folder + table; has(path)) {
      const std::vector<Recipe> rows = recipes_of(read_published(CsvTable::read(path)));
      recipes.insert(recipes.end(), rows.begin(), rows.end());
    }
  return recipes;
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

// An id of a table is not trusted as a file's name.
std::string file_name(std::string id) {
  for (char& c : id)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
  return id;
}

void add_rows(std::vector<PublishedRow> rows, const std::vector<std::string>& fitted, const ValidateOptions& options, const Catalog& catalog, ValidationSuite& suite, std::vector<Job>& jobs) {
  const std::vector<Recipe> recipes = known_recipes();
  rows = without_duplicates(std::move(rows));
  std::vector<std::string> notes;
  notes.reserve(rows.size());
  for (PublishedRow& row : rows) {
    notes.push_back(complete_row(row, recipes));
  }
  settle_speculation(rows, recipes);
  share_launches(rows);
  int taken = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PublishedRow& row = rows[i];
    const std::string& filled = notes[i];
    if (!selected(row, options.where) || (options.most_rows > 0 && taken >= options.most_rows)) continue;
    ++taken;
    const PublishedScenario scenario = scenario_of(row, catalog);
    if (!options.scenarios.empty() && scenario.refused.empty()) write_output_file(options.scenarios + "/" + file_name(row.id) + ".yaml", scenario.yaml);
    Job job;
    job.request = {row.id, scenario.yaml, options.sets};
    if (options.draws > 0) job.request.sets.push_back(fmt::format("uncertainty={}", options.draws));
    job.waits = scenario;
    job.published = true;
    job.disaggregated = row.disaggregated;
    job.users = row.concurrency;
    job.framework = row.framework;
    const std::vector<std::string> tags{"gpu=" + row.gpu, row.disaggregated ? "mode=disagg" : "mode=agg", row.concurrency >= 256 ? "load=high" : "load=low", "model=" + row.model};
    const auto figure = [&](const char* metric, const char* of_run, const std::optional<double>& published) {
      if (!published || *published <= 0) return;
      job.items.emplace_back(suite.items.size(), of_run);
      suite.items.push_back({.id = row.id, .metric = metric, .published = *published, .predicted = {}, .lo = {}, .hi = {},
                             .fitted = std::find(fitted.begin(), fitted.end(), row.id + " " + metric) != fitted.end(), .refused = scenario.refused, .citation = row.citation, .note = filled + (scenario.note.empty() ? "" : "; " + scenario.note), .tags = tags,
                             .spread = row.concurrency <= 64 ? run_to_run_spread_low_load : run_to_run_spread});
    };
    figure("tpot", "tpot_mean_s", row.tpot_s);
    figure("ttft", "ttft_mean_s", row.ttft_s);
    figure("total_tok_s_gpu", "total_tok_s_gpu", row.total_tok_s_gpu);
    figure("p90_tok_s_user", "p90_tok_s_user", row.p90_tok_s_user);
    figure("cache_hit_gpu", "cache_hit_gpu", row.hit_gpu);
    figure("cache_hit_host", "cache_hit_host", row.hit_host);
    if (scenario.refused.empty() && !job.items.empty()) jobs.push_back(std::move(job));
  }
}

// Under RACKCAST_DATA, or beside the suites (scenarios/published) for the few facts that are part of the program.
std::string table_file(const std::string& table, const Catalog& catalog) {
  std::vector<std::string> folders = catalog.roots();
  if (!data_folder().empty()) folders.insert(folders.begin(), data_folder());
  for (const std::string& folder : folders)
    if (std::string path = folder + "/" + table; std::ifstream(path).good()) return path;
  return {};
}

bool wanted(const PublishedRow& row, const SuiteSpec& spec) {
  if (!spec.workload.empty() && row.workload != spec.workload) return false;
  if (!selected(row, spec.where)) return false;
  return spec.models.empty() || std::any_of(spec.models.begin(), spec.models.end(), [&](const std::string& part) { return row.model.find(part) != std::string::npos; });
}

// Fills predictions from the metrics of finished runs.
void run_jobs(const std::vector<Job>& jobs, const ValidateOptions& options, const Catalog& catalog, ValidationSuite& suite) {
  std::vector<RunRequest> requests;
  requests.reserve(jobs.size());
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
      item.outside_range = get("outside_range").value_or(0);
      item.predicted = get(metric);
      if (!item.predicted) item.refused = "the run gave no " + metric;
      item.lo = get(metric + "_lo");
      item.hi = get(metric + "_hi");
      if (metric == "ttft_mean_s" && item.predicted) {
        const double wait_s = waited_s(jobs[i].waits, get("tpot_mean_s").value_or(0));
        for (std::optional<double>* value : {&item.predicted, &item.lo, &item.hi})
          if (*value) **value += wait_s;
      }
      if (!jobs[i].published) continue;
      add_model_error(item, {jobs[i].framework, jobs[i].disaggregated, jobs[i].users});
    }
}

ValidationSuite run_suite(const SuiteSpec& spec, const ValidateOptions& options, const Catalog& catalog) {
  ValidationSuite suite{spec.name, {}, {}};
  // Promises are about the whole suite and the shipped parameters.
  if (options.where.empty() && options.sets.empty() && options.most_rows == 0)
    for (const BoundFigure& b : spec.bounds) suite.bounds.push_back({b.metric, b.tags, b.median, b.coverage, b.enforced});
  std::vector<Job> jobs;
  for (const StepFigure& figure : spec.steps) suite.items.push_back(step_item(figure, catalog));
  for (const RunFigure& figure : spec.runs) {
    RunRequest request{figure.id, "base: " + figure.scenario + "\n", figure.sets};
    request.sets.insert(request.sets.end(), options.sets.begin(), options.sets.end());
    if (options.draws > 0) request.sets.push_back(fmt::format("uncertainty={}", options.draws));
    // Several figures of one run: it runs once.
    auto job = std::find_if(jobs.begin(), jobs.end(), [&](const Job& known) { return known.request.yaml == request.yaml && known.request.sets == request.sets; });
    if (job == jobs.end()) job = jobs.insert(jobs.end(), Job{.request = std::move(request), .items = {}, .waits = {}});
    job->items.emplace_back(suite.items.size(), figure.metric);
    suite.items.push_back({.id = figure.id, .metric = figure.metric, .published = figure.published, .predicted = {}, .lo = {}, .hi = {},
                           .fitted = figure.fitted, .refused = "", .citation = figure.citation, .note = "", .tags = {}});
  }
  if (!spec.table.empty()) {
    if (const std::string file = table_file(spec.table, catalog); file.empty()) {
      fmt::print(stderr, "{}: its table {} is not read, RACKCAST_DATA is not set\n", spec.name, spec.table);
      suite.bounds.clear();
    } else {
      std::vector<PublishedRow> rows = read_published(CsvTable::read(file));
      std::erase_if(rows, [&](const PublishedRow& row) { return !wanted(row, spec); });
      add_rows(std::move(rows), spec.fitted, options, catalog, suite, jobs);
    }
  }
  if (!spec.kernels.empty()) {
    if (data_folder().empty()) fmt::print(stderr, "{}: its kernel tables are not read, RACKCAST_DATA is not set\n", spec.name);
    else add_kernels(spec, data_folder(), catalog, suite);
  }
  run_jobs(jobs, options, catalog, suite);
  return suite;
}

int validate(const ValidateOptions& options, const Catalog& catalog) {
  if (!options.predict.empty()) return predict_runs(options.predict, known_recipes(), options.draws, options.jobs, catalog);
  if (!options.compare.empty()) {
    if (options.data.size() != 1) throw UserError("--compare takes predictions and, with --data, the one table of their measured results");
    return compare_runs(options.compare, options.data.front(), options.costs, options.json, catalog);
  }
  std::vector<ValidationSuite> suites;
  std::vector<std::string> names = options.suites;
  if (names.empty() && options.data.empty()) names = catalog.names("suites");
  suites.reserve(names.size() + options.data.size());
  for (const std::string& name : names)
    suites.push_back(run_suite(read_yaml_as<SuiteSpec>(catalog.find("suites", name), catalog.read_options()), options, catalog));
  for (const std::string& file : options.data) {
    ValidationSuite suite{file, {}, {}};
    std::vector<Job> jobs;
    add_rows(read_published(CsvTable::read(file)), {}, options, catalog, suite, jobs);
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
  for (const ValidationSuite& suite : suites)
    for (const BoundCheck& check : check_bounds(suite))
      if (check.bound.enforced && !check.kept)
        throw BoundMissed(fmt::format("{}: a bound of {} is missed: median error {:.1f}% (bound {:.1f}%), coverage {:.1f}% (bound {:.1f}%)", suite.name, check.bound.metric,
                                      100 * check.median, 100 * check.bound.median, 100 * check.coverage, 100 * check.bound.coverage));
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
  app.add_option("--draws", options->draws, "parameter sets drawn for the bands of every row; 0: no bands")->check(CLI::Range(0, 1000))->type_name("N");
  app.add_option("--predict", options->predict, "predictions for the planned runs of a table, as CSV on stdout")->type_name("FILE.csv");
  app.add_option("--compare", options->compare, "predictions made earlier, against the measured results in --data")->type_name("PREDICTIONS.csv");
  app.add_option("--costs", options->costs, "with --compare: write the GPU's cost file with the difference as a measured composite")->type_name("OUT.yaml");
  app.add_option("--scenarios", options->scenarios, "folder for the scenario of every predicted row of a table, as ID.yaml")->check(CLI::ExistingDirectory)->type_name("DIR");
  app.add_option("--jobs", options->jobs, "processes at once; 0: one a core")->type_name("N");
  app.add_flag("--json", options->json, "print JSON");
  add_sets(app, options->sets);
  return [options, &program] { return validate(*options, program.catalog()); };
}

}  // namespace rackcast
