// rackcast fit: measurements in, cost file out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "calib/fit_costs.hpp"
#include "calib/fit_host.hpp"
#include "calib/fit_import.hpp"
#include "calib/fit_layers.hpp"
#include "calib/fit_siblings.hpp"
#include "sim/base/error.hpp"
#include "sim/base/output.hpp"
#include "sim/cli/verbs.hpp"
#include "sim/spec/gpu.hpp"

namespace rackcast {

namespace {

struct FitOptions {
  std::vector<std::string> files, only;
  std::string out, gpu, prior;
  int bootstraps = 200;
  std::uint64_t seed = 1;
  bool keep_parameters = false, json = false;
};

std::string one_gpu(const FitOptions& o, const std::vector<calib::FitPoint>& points) {
  std::set<std::string> found;
  for (const calib::FitPoint& p : points) found.insert(p.gpu);
  if (!o.gpu.empty()) {
    if (!found.count(o.gpu)) throw UserError("no point is of GPU " + o.gpu + "; the files hold " + fmt::format("{}", fmt::join(found, ", ")));
    return o.gpu;
  }
  if (found.size() == 1) return *found.begin();
  throw UserError("the files hold points of " + fmt::format("{}", fmt::join(found, ", ")) + "; choose one with --gpu");
}

// Kernel families first; then composites, on what those leave unexplained.
calib::CostFit fit_all(const FitOptions& o, const std::string& gpu, std::vector<calib::FitPoint> points, int hidden_steps, const Catalog& catalog) {
  std::map<std::string, GpuSpec> specs;
  for (const calib::FitPoint& p : points)
    if (!specs.count(p.gpu)) specs[p.gpu] = read_yaml_as<GpuSpec>(catalog.find("gpus", p.gpu), catalog.read_options());
  const GpuSpec& spec = specs.at(gpu);
  calib::know_cache(points, specs);
  const calib::FamilyFitOptions options{.bootstraps = o.bootstraps, .largest_hbm_gbs = spec.hbm_bandwidth.value() / 1e9, .seed = o.seed};
  std::vector<calib::FitPoint> kernels, layers;
  std::set<std::string> models;
  for (const calib::FitPoint& p : points) {
    if (p.gpu != gpu) continue;
    const bool layer = p.family.rfind("composite", 0) == 0;
    if (layer) models.insert(p.model);
    (layer ? layers : kernels).push_back(p);
  }
  const std::vector<std::string> helped = calib::add_siblings(kernels, points, gpu, specs);
  const CostSpec prior = read_costs(catalog, o.prior.empty() ? gpu : o.prior);
  if (prior.gpu != gpu) throw UserError(fmt::format("--prior {} is about GPU {}, the points are of {}: copy it, and change its gpu and the bases of what it says", o.prior, prior.gpu, gpu));
  const auto fit_or_judge = o.keep_parameters ? calib::judge_costs : calib::fit_costs;
  calib::CostFit fit = fit_or_judge(prior, gpu, kernels, options);
  fit.exact = calib::fit_exact(fit.costs, gpu, kernels, o.keep_parameters);
  for (const std::string& family : helped) fit.notes.push_back(family + ": few points of this GPU; those of others joined, scaled by the specifications");
  if (!o.keep_parameters) calib::describe_host(fit, kernels, hidden_steps);
  for (const std::string& name : models)
    calib::explain_layers(layers, fit.costs, read_yaml_as<ModelSpec>(catalog.find("models", name), catalog.read_options({}, "models")), spec);
  calib::CostFit composites = fit_or_judge(fit.costs, gpu, layers, options);
  fit.costs = std::move(composites.costs);
  // Whole forwards were explained without any composite: those of single kinds of layers would hide what was found.
  for (const calib::FamilyFit& f : composites.families)
    if (f.family == "composite" && !o.keep_parameters)
      for (const char* kind : {"composite_window", "composite_selected", "composite_all"}) fit.costs.models[f.model].families.erase(kind);
  fit.families.insert(fit.families.end(), composites.families.begin(), composites.families.end());
  fit.notes.insert(fit.notes.end(), composites.notes.begin(), composites.notes.end());
  return fit;
}

nlohmann::ordered_json as_json(const std::string& gpu, const calib::CostFit& fit) {
  nlohmann::ordered_json out{{"gpu", gpu}, {"families", nlohmann::ordered_json::array()}, {"notes", fit.notes}};
  for (const calib::FamilyFit& f : fit.families) {
    nlohmann::ordered_json row{{"family", f.family}, {"model", f.model}, {"form", f.form}, {"points", f.range.points},
                               {"mean_error", f.range.mean_error}, {"median_error", f.median_error}, {"p90_error", f.range.p90_error},
                               {"cross_validated_error", f.range.cross_validated_error}};
    for (std::size_t i = 0; i < range_axes; ++i)
      if (f.range.spans[i].given()) row["range"][std::string(range_axis_names[i])] = {f.range.spans[i].lo, f.range.spans[i].hi};
    for (const calib::FittedParameter& p : f.parameters)
      row["parameters"][p.name] = {{"value", p.value}, {"lo", p.lo}, {"hi", p.hi}, {"fallback", p.fallback}};
    out["families"].push_back(row);
  }
  for (const calib::ExactFit& e : fit.exact)
    out["exact"].push_back({{"family", e.family}, {"curves", e.curves}, {"points", e.points}, {"left_out_in_turn", e.inner},
                            {"interpolated_error", e.interpolated_error}, {"form_error", e.form_error}, {"cached", e.cached}, {"written", e.written}});
  return out;
}

// What a family's cross-validated error should not exceed: what the published tables that the forms come from allow.
double bar_of(const std::string& family) {
  struct Bar {
    std::string_view prefix;
    double error;
  };
  static constexpr Bar bars[] = {{"dense_bf16", 0.09}, {"dense_fp8", 0.12}, {"dense_fp4", 0.12}, {"moe_fused", 0.10}, {"moe_", 0.15}, {"composite", 0.05},
                                 {"attention_mla", 0.15}, {"a2a_", 0.15}, {"deepep_", 0.15}, {"all_reduce", 0.16}, {"nccl_", 0.16}};
  for (const Bar& bar : bars)
    if (std::string_view(family).substr(0, bar.prefix.size()) == bar.prefix) return bar.error;
  return 0;
}

void print_table(const std::string& gpu, const calib::CostFit& fit) {
  fmt::print("{}\n{:<28} {:>6} {:>8} {:>8} {:>8} {:>8}  {}\n", gpu, "family", "points", "mean", "median", "p90", "cv mean", "bar");
  for (const calib::FamilyFit& f : fit.families)
    fmt::print("{:<28} {:>6} {:>7.1f}% {:>7.1f}% {:>7.1f}% {:>8}  {}\n", f.family, f.range.points, 100 * f.range.mean_error, 100 * f.median_error,
               100 * f.range.p90_error, f.range.cross_validated_error > 0 ? fmt::format("{:.1f}%", 100 * f.range.cross_validated_error) : "-",
               bar_of(f.family) <= 0 ? "" : fmt::format("{:.0f}%{}", 100 * bar_of(f.family), f.range.cross_validated_error > bar_of(f.family) ? " missed" : ""));
}

// Each inner point from its neighbours, against the form.
void print_exact(const std::vector<calib::ExactFit>& fits) {
  if (fits.empty()) return;
  fmt::print("{:<28} {:>6} {:>8} {:>8} {:>13} {:>8}\n", "exact points", "shapes", "points", "left out", "interpolated", "by form");
  for (const calib::ExactFit& e : fits)
    fmt::print("{:<28} {:>6} {:>8} {:>8} {:>12.1f}% {:>7.1f}%  {}{}\n", e.family, e.curves, e.points, e.inner, 100 * e.interpolated_error, 100 * e.form_error,
               e.written ? "written" : e.inner == 0 ? "not written: none with neighbours on both sides" : "not written: the form is better",
               e.cached > 0 ? fmt::format("; {} points not taken: L2 may have held them", e.cached) : "");
}

int run_fit(const FitOptions& o, const Program& program) {
  const Catalog catalog = program.catalog();
  std::vector<calib::FitPoint> points;
  int hidden_steps = 0;
  for (const std::string& file : o.files) {
    calib::Imported found = calib::import_points(file);
    fmt::print(stderr, "{}: {} points\n", file, found.points.size());
    for (const auto& [reason, rows] : found.left_out) fmt::print(stderr, "  {} rows left out: {}\n", rows, reason);
    points.insert(points.end(), found.points.begin(), found.points.end());
    for (const auto& [model, at] : found.models)
      try {
        catalog.find("models", model);
      } catch (const UserError& error) {
        throw UserError(at.first, at.second, 0, "model", error.problems().front().rule);
      }
    if (const auto hidden = found.left_out.find(std::string(calib::hidden_host_time)); hidden != found.left_out.end()) hidden_steps += hidden->second;
  }
  for (const std::string& family : o.only)
    if (std::none_of(points.begin(), points.end(), [&](const calib::FitPoint& p) { return p.family == family; })) throw UserError("--only " + family + ": no point is of it");
  if (!o.only.empty()) std::erase_if(points, [&](const calib::FitPoint& p) { return std::find(o.only.begin(), o.only.end(), p.family) == o.only.end(); });
  if (points.empty()) throw UserError("nothing to fit: no row of the files describes a kernel that costs are kept for");
  const std::string gpu = one_gpu(o, points);
  std::vector<std::string> read = o.files;
  read.push_back(catalog.find("costs", o.prior.empty() ? gpu : o.prior.substr(0, o.prior.find('@'))).name);
  refuse_overwriting(o.out, read);
  calib::CostFit fit = fit_all(o, gpu, std::move(points), hidden_steps, catalog);
  for (const std::string& note : fit.notes) fmt::print(stderr, "note: {}\n", note);
  fit.costs.name = std::filesystem::path(o.out).stem().string();
  if (o.keep_parameters && fit.families.empty()) throw UserError("no family of the cost file is of these points: nothing to keep or to write");
  write_output_file(o.out, yaml_of(fit.costs));
  if (o.json) fmt::print("{}\n", as_json(gpu, fit).dump(2));
  else {
    if (!fit.families.empty()) print_table(gpu, fit);
    print_exact(fit.exact);
  }
  return 0;
}

}  // namespace

Action setup_fit(CLI::App& app, const Program& program) {
  auto o = std::make_shared<FitOptions>();  // outlives this call: the parsed action keeps it
  app.add_option("files", o->files, "measurements: .jsonl of rackcast-calib, or a .csv that calib/README.md describes")->required();
  app.add_option("--out", o->out, "cost file to write")->required();
  app.add_option("--gpu", o->gpu, "the GPU to fit, when the files hold several");
  app.add_option("--prior", o->prior, "cost file that gives what the points do not; the GPU's own if left out");
  app.add_option("--only", o->only, "fit only these families; the others stay as the prior has them")->type_name("FAMILY");
  app.add_flag("--keep-parameters", o->keep_parameters, "keep the prior's parameters; write how well they meet the points, the range of these, and exact points of their shapes");
  app.add_option("--bootstraps", o->bootstraps, "resampled fits behind the intervals")->check(CLI::Range(20, 10000));
  add_seed(app, o->seed, "of starts, folds and resampling");
  app.add_flag("--json", o->json, "machine-readable");
  return [o, &program] { return run_fit(*o, program); };
}

}  // namespace rackcast
