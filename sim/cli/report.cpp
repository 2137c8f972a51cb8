// rackcast report RESULTS.sqlite|DIR --out REPORT.html: one self-contained page.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "analysis/published_rows.hpp"
#include "analysis/report_page.hpp"
#include "analysis/store.hpp"
#include "sim/base/error.hpp"
#include "sim/base/input.hpp"
#include "sim/base/output.hpp"
#include "sim/cli/report_run.hpp"
#include "sim/cli/verbs.hpp"
#include "sim/spec/scenario.hpp"

namespace rackcast {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

constexpr double tokens_per_mtok = 1e6, seconds_per_hour = 3600;

constexpr std::uintmax_t max_json_bytes = std::uintmax_t{64} << 20U;

struct ReportOptions {
  std::string input, out, validation;
};

std::string text_of(const fs::path& path) {
  std::error_code code;
  check_input_path(path.string());
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UserError(path.string(), 0, 0, "", "cannot be opened");
  if (fs::file_size(path, code) > max_json_bytes) throw UserError(path.string(), 0, 0, "", fmt::format("is larger than {} MiB", max_json_bytes >> 20U));
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

Json json_of(const fs::path& path) {
  Json value = Json::parse(text_of(path), nullptr, false);
  if (value.is_discarded()) throw UserError(path.string(), 0, 0, "", "is not valid JSON");
  return value;
}

// Every price list that prices the model, both periods.
Json price_choices(const Catalog& catalog, const std::string& model) {
  Json choices = Json::array();
  for (const std::string& name : catalog.names("prices")) {
    const PriceList list = read_yaml_as<PriceList>(catalog.find("prices", name), catalog.read_options());
    const auto it = list.models.find(model);
    if (it == list.models.end()) continue;
    for (const auto& [period, price] : {std::pair{"off-peak", it->second.off_peak}, std::pair{"peak", it->second.peak}})
      choices.push_back({{"list", name}, {"model", model}, {"period", period}, {"source", it->second.source},
                         {"price", {{"cached_input", price.cached_input.value() * tokens_per_mtok}, {"input", price.input.value() * tokens_per_mtok}, {"output", price.output.value() * tokens_per_mtok}}}});
  }
  return choices;
}

// Published results of the same model, to lay over the sweep.
Json published_points(const Catalog& catalog, const std::string& model) {
  Json points = Json::array();
  fs::path path;
  for (const std::string& root : catalog.roots())
    if (path.empty() && fs::exists(fs::path(root) / "published/agentx.csv")) path = fs::path(root) / "published/agentx.csv";
  if (path.empty()) return points;
  for (const PublishedRow& row : read_published(CsvTable::read(path.string()))) {
    std::string published = row.model;
    std::transform(published.begin(), published.end(), published.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (published.find(model) == std::string::npos) continue;
    Json metrics = Json::object();
    const auto put = [&](const char* key, const std::optional<double>& value) { if (value) metrics[key] = *value; };
    put("total_tok_s_gpu", row.total_tok_s_gpu);
    put("p50_tok_s_user", row.p50_tok_s_user);
    put("p90_tok_s_user", row.p90_tok_s_user);
    points.push_back({{"label", fmt::format("{} {} {} GPUs, {} lanes", row.gpu, row.framework, row.total_gpus, row.concurrency)},
                      {"citation", row.citation + ", " + row.date}, {"metrics", metrics}});
  }
  return points;
}

// What a GPU costs an hour, as the GPU's file says; for sweeps of one kind of GPU.
Json gpu_prices(const GpuSpec& gpu) {
  Json prices = Json::array();
  for (const auto& [name, price] : {std::pair{"owning", gpu.owning_price}, std::pair{"rental", gpu.rental_price}})
    if (price.value() > 0) prices.push_back({{"name", name}, {"usd_gpu_hour", price.value() * seconds_per_hour}, {"source", gpu.price_source}});
  return prices;
}

std::optional<Scenario> scenario_of(const std::string& yaml, const Catalog& catalog) {
  try {
    return read_scenario(YamlSource{"stored scenario", yaml}, catalog, {});
  } catch (const UserError&) {
    return std::nullopt;  // stored by another version; the page then offers no prices
  }
}

int report(const ReportOptions& options, const Program& program) {
  const Catalog catalog = program.catalog();
  Json parts = Json::object();
  std::string title = fs::path(options.input).filename().string(), model;
  if (fs::is_directory(options.input)) {
    const Json result = json_of(fs::path(options.input) / "result.json");
    parts["run"] = report_run(result, options.input);
    title = result.value("/manifest/name"_json_pointer, title);
  } else {
    const Store store(options.input, Store::Mode::read);
    std::optional<Scenario> scenario;
    const std::vector<StoredResult> results = store.headlines();
    if (results.empty()) throw UserError(options.input, 0, 0, "", "holds no result yet");
    parts["sweep"] = report_sweep(title, results);
    for (const StoredResult& result : results)
      if (!scenario && result.status == "done") scenario = scenario_of(store.find_id(result.id)->scenario, catalog);
    if (scenario) model = scenario->model.name;
    if (!model.empty()) {
      parts["prices"] = price_choices(catalog, model);
      parts["published"] = published_points(catalog, model);
      if (parts["sweep"]["constants"].contains("rack.gpu.name")) parts["gpu_prices"] = gpu_prices(scenario->rack.gpu);
    }
  }
  if (!options.validation.empty()) parts["validation"] = json_of(options.validation);
  refuse_overwriting(options.out, {options.input, options.validation});
  write_output_file(options.out, report_page(std::string(report_template()), report_data(title, parts)));
  fmt::print("{}\n", options.out);
  return 0;
}

}  // namespace

Action setup_report(CLI::App& app, const Program& program) {
  const auto options = std::make_shared<ReportOptions>();
  app.add_option("INPUT", options->input, "a store of results, or the folder of a run")->required()->type_name("RESULTS.sqlite|DIR");
  app.add_option("--out", options->out, "the page to write")->required()->type_name("REPORT.html");
  app.add_option("--validation", options->validation, "what `validate --json` printed, as one more view")->type_name("FILE.json");
  return [options, &program] { return report(*options, program); };
}

}  // namespace rackcast
