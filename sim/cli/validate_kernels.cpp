#include "sim/cli/validate_kernels.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "calib/fit_form.hpp"
#include "calib/fit_import.hpp"
#include "calib/fit_layers.hpp"
#include "calib/fit_siblings.hpp"
#include "sim/cost/costs.hpp"
#include "sim/spec/gpu.hpp"

namespace rackcast {

namespace {

using calib::FitPoint;

// Seconds by the parameters of a cost file; nullopt where it has not all of them.
std::optional<double> seconds(const FitPoint& point, const CostSpec& costs) {
  const calib::Form& form = calib::form_of_family(point.family);
  std::vector<double> theta;
  theta.reserve(form.parameters.size());
  for (const calib::Parameter& p : form.parameters) {
    const CostParameter* known = costs.find(point.family, std::string(p.name), point.model);
    // What a file leaves out costs nothing: a row's padding, a link's half-way size.
    if (!known && !p.optional && p.name != "half_mb") return std::nullopt;
    theta.push_back(known ? known->value : 0);
  }
  return form.seconds(point, theta.data());
}

// Efficiencies stay, limits change: rates move with the specifications, fixed times stay as they are.
CostSpec transferred(CostSpec costs, const GpuSpec& from, const GpuSpec& to) {
  const auto scale = [&](const std::string& name, CostFamily& family) {
    const double compute = calib::compute_rate(from, name) > 0 ? calib::compute_rate(to, name) / calib::compute_rate(from, name) : 0;
    family.exact.clear();  // points of the other GPU
    for (auto& [key, parameter] : family.parameters) {
      if (key == "mma_tflops") parameter.value *= compute;
      else if (key == "hbm_gbs" || key == "reduce_gbs") parameter.value *= to.hbm_bandwidth.value() / from.hbm_bandwidth.value();
      else if (key == "link_gbs") parameter.value *= to.nvlink_bandwidth.value() / from.nvlink_bandwidth.value();
    }
  };
  for (auto& [name, family] : costs.families) scale(name, family);
  for (auto& [model, own] : costs.models)
    for (auto& [name, family] : own.families) scale(name, family);
  return costs;
}

void explain(std::vector<FitPoint>& points, const CostSpec& costs, const GpuSpec& gpu, const Catalog& catalog) {
  std::set<std::string> models;
  for (const FitPoint& p : points)
    if (p.family.rfind("composite", 0) == 0 && p.gpu == costs.gpu) models.insert(p.model);
  for (const std::string& model : models)
    calib::explain_layers(points, costs, read_yaml_as<ModelSpec>(catalog.find("models", model), catalog.read_options({}, "models")), gpu);
}

void add_points(const std::vector<FitPoint>& points, const CostSpec& costs, const std::string& gpu, const std::string& before, bool fitted, ValidationSuite& suite) {
  int number = 0;
  for (const FitPoint& p : points) {
    if (p.gpu != gpu) continue;
    ValidationItem item{.id = fmt::format("{}-{}-{}", gpu, p.family, ++number), .metric = before + p.family, .published = p.time_s, .predicted = seconds(p, costs), .lo = {}, .hi = {},
                        .fitted = fitted, .refused = "", .citation = p.source, .note = p.shape, .tags = {"gpu=" + gpu}};
    if (!item.predicted) item.refused = "the cost file has no " + p.family;
    suite.items.push_back(std::move(item));
  }
}

}  // namespace

void add_kernels(const SuiteSpec& spec, const std::string& data_folder, const Catalog& catalog, ValidationSuite& suite) {
  std::vector<FitPoint> points;
  for (const std::string& table : spec.kernels) {
    const calib::Imported found = calib::import_points(data_folder + "/" + table);
    points.insert(points.end(), found.points.begin(), found.points.end());
  }
  const auto gpu_spec = [&](const std::string& name) { return read_yaml_as<GpuSpec>(catalog.find("gpus", name), catalog.read_options()); };
  std::set<std::string> gpus;
  for (const FitPoint& p : points) gpus.insert(p.gpu);
  std::map<std::string, GpuSpec> specs;
  for (const std::string& gpu : gpus) specs[gpu] = gpu_spec(gpu);
  calib::know_cache(points, specs);
  if (spec.transfer.empty()) {
    for (const std::string& gpu : gpus) {
      const CostSpec costs = read_costs(catalog, gpu);
      explain(points, costs, gpu_spec(gpu), catalog);
      add_points(points, costs, gpu, "", true, suite);
    }
    return;
  }
  for (const TransferFigure& t : spec.transfer) {
    CostSpec costs = transferred(read_costs(catalog, t.from), gpu_spec(t.from), gpu_spec(t.to));
    costs.gpu = t.to;
    explain(points, costs, gpu_spec(t.to), catalog);
    add_points(points, costs, t.to, fmt::format("{} -> {} ", t.from, t.to), false, suite);
  }
}

}  // namespace rackcast
