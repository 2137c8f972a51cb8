#include "sim/cli/validate_predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/validation.hpp"
#include "sim/base/error.hpp"
#include "sim/base/output.hpp"
#include "sim/cli/published_scenario.hpp"
#include "sim/cli/run_many.hpp"
#include "sim/cost/costs.hpp"
#include "sim/engine/result_range.hpp"
#include "sim/spec/scenario.hpp"

namespace rackcast {

namespace {

// Metric of a published table, metric of a run.
constexpr std::pair<const char*, const char*> metrics[] = {
    {"tpot", "tpot_mean_s"}, {"ttft", "ttft_mean_s"}, {"total_tok_s_gpu", "total_tok_s_gpu"}, {"p90_tok_s_user", "p90_tok_s_user"}};

std::optional<double> measured_value(const PublishedRow& row, const std::string& metric) {
  if (metric == "tpot") return row.tpot_s;
  if (metric == "ttft") return row.ttft_s;
  return metric == "total_tok_s_gpu" ? row.total_tok_s_gpu : row.p90_tok_s_user;
}

std::string quoted(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  return "\"" + text + "\"";
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.size() % 2 ? v[v.size() / 2] : 0.5 * (v[v.size() / 2 - 1] + v[v.size() / 2]);
}

// The median of what a step took longer than predicted, spread over the model's layers.
void write_costs(const CsvTable& predictions, const std::vector<double>& per_layer_us, const std::string& measured, const std::string& out, const Catalog& catalog) {
  std::set<std::string> gpus, models;
  for (std::size_t i = 0; i < predictions.rows(); ++i) {
    gpus.insert(predictions.text(i, "gpu"));
    models.insert(predictions.text(i, "model"));
  }
  if (gpus.size() != 1 || models.size() != 1) throw UserError("--costs needs predictions of one GPU and one model");
  if (per_layer_us.size() < 3) throw UserError("--costs needs measured TPOT of at least three predicted runs");
  CostSpec costs = read_costs(catalog, *gpus.begin());
  const double shift = median(per_layer_us);
  const CostParameter* known = costs.find("composite", "a0_us", *models.begin());
  const CostParameter* slope = costs.find("composite", "a1_us", *models.begin());
  std::vector<double> sorted = per_layer_us;
  std::sort(sorted.begin(), sorted.end());
  CostFamily& family = costs.models[*models.begin()].families["composite"];
  family.form = "layer";
  const double before = known ? known->value : 0;
  const std::string source = fmt::format("median difference of {} measured runs, {}", per_layer_us.size(), measured.substr(measured.find_last_of('/') + 1));
  CostParameter& a0 = family.parameters["a0_us"];
  a0 = {before + shift, before + sorted[sorted.size() / 10], before + sorted[sorted.size() - 1 - sorted.size() / 10], Basis::measured, source};
  if (!slope) family.parameters["a1_us"] = {0, 0, 0, Basis::measured, source};
  write_output_file(out, yaml_of(costs));
  fmt::print(stderr, "{}: {:+.2f} us a layer\n", out, shift);
}

}  // namespace

int predict_runs(const std::string& planned, const std::vector<Recipe>& recipes, int draws, int jobs, const Catalog& catalog) {
  std::vector<PublishedRow> rows = read_published(CsvTable::read(planned));
  std::vector<RunRequest> requests;
  std::vector<std::size_t> row_of;
  std::vector<PublishedScenario> scenarios;
  scenarios.reserve(rows.size());
  for (PublishedRow& row : rows) {
    complete_row(row, recipes);
    scenarios.push_back(scenario_of(row, catalog));
    if (!scenarios.back().refused.empty()) {
      fmt::print(stderr, "{}: refused: {}\n", row.id, scenarios.back().refused);
      continue;
    }
    row_of.push_back(scenarios.size() - 1);
    requests.push_back({row.id, scenarios.back().yaml, {fmt::format("uncertainty={}", draws)}});
  }
  const std::vector<RunReply> replies = run_many(requests, catalog, jobs, "predict");
  fmt::print("id,metric,predicted,lo,hi,gpu,model,layers,acceptance_length,note\n");
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const PublishedRow& row = rows[row_of[i]];
    if (!replies[i].error.empty()) {
      fmt::print(stderr, "{}: refused: {}\n", row.id, replies[i].error);
      continue;
    }
    const Scenario s = read_scenario(YamlSource{row.id, scenarios[row_of[i]].yaml}, catalog, {});
    const auto number = [&](const std::string& key) -> std::optional<double> {
      const auto& m = replies[i].metrics;
      if (!m.contains(key) || !m[key].is_number()) return std::nullopt;
      return m[key].get<double>();
    };
    const PublishedScenario& scenario = scenarios[row_of[i]];
    const std::string remark = range_remark(number("outside_range").value_or(0));
    const std::string note = scenario.note + (scenario.note.empty() || remark.empty() ? "" : "; ") + remark;
    const double tpot_s = number("tpot_mean_s").value_or(0);
    for (const auto& pair : metrics) {
      const std::string metric = pair.first, of_run = pair.second;
      const double wait_s = metric == "ttft" ? waited_s(scenario, tpot_s) : 0;
      ValidationItem item{.id = row.id, .metric = metric, .published = 0, .predicted = number(of_run), .lo = number(of_run + "_lo"),
                          .hi = number(of_run + "_hi"), .fitted = false, .refused = "", .citation = "", .note = "", .tags = {}};
      if (!item.predicted) continue;
      for (std::optional<double>* value : {&item.predicted, &item.lo, &item.hi})
        if (*value) **value += wait_s;
      add_model_error(item, {row.framework, row.disaggregated, static_cast<double>(row.concurrency)});
      const auto text = [](const std::optional<double>& v) { return v ? fmt::format("{:.9g}", *v) : std::string(); };
      fmt::print("{},{},{:.9g},{},{},{},{},{},{:.6g},{}\n", row.id, metric, *item.predicted, text(item.lo), text(item.hi), row.gpu, s.model.name,
                 s.model.layer_count(), s.deployment.speculation.acceptance_length, quoted(note));
    }
  }
  return 0;
}

int compare_runs(const std::string& predictions, const std::string& measured, const std::string& costs_out, bool json, const Catalog& catalog) {
  const CsvTable table = CsvTable::read(predictions);
  table.require({"id", "metric", "predicted", "lo", "hi", "gpu", "model", "layers", "acceptance_length"});
  std::map<std::string, PublishedRow> results;
  for (PublishedRow& row : read_published(CsvTable::read(measured))) results.emplace(row.id, std::move(row));
  ValidationSuite suite{"predicted, then measured", {}, {}};
  std::vector<double> per_layer_us;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const std::string &id = table.text(i, "id"), &metric = table.text(i, "metric");
    const auto found = results.find(id);
    if (found == results.end()) {
      fmt::print(stderr, "{}: predicted, not measured\n", id);
      continue;
    }
    const auto value = measured_value(found->second, metric), predicted = table.number(i, "predicted");
    if (!value || *value <= 0 || !predicted) continue;
    suite.items.push_back({.id = id, .metric = metric, .published = *value, .predicted = predicted, .lo = table.number(i, "lo"), .hi = table.number(i, "hi"),
                           .fitted = false, .refused = "", .citation = measured, .note = "", .tags = {},
                           .spread = found->second.concurrency <= 64 ? run_to_run_spread_low_load : run_to_run_spread});
    if (metric == "tpot")
      per_layer_us.push_back((*value - *predicted) * table.number(i, "acceptance_length").value_or(1) / table.number(i, "layers").value_or(1) * 1e6);
  }
  if (suite.items.empty()) throw UserError("no run of " + predictions + " has a measured result in " + measured);
  if (json) fmt::print("{}\n", validation_json({suite}).dump(1));
  else fmt::print("{}", validation_table({suite}));
  if (!costs_out.empty()) write_costs(table, per_layer_us, measured, costs_out, catalog);
  return 0;
}

}  // namespace rackcast
