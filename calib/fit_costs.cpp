#include "calib/fit_costs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace rackcast::calib {

namespace {

std::vector<double> prior_of(const CostSpec& costs, const Form& form, const std::string& family, const std::string& model) {
  std::vector<double> values;
  for (const Parameter& p : form.parameters) {
    const CostParameter* known = costs.find(family, std::string(p.name), model);
    const double middle = p.optional ? 0 : p.positive ? std::sqrt(p.low * p.high) : 0;
    values.push_back(known ? std::clamp(known->value, p.low, p.high) : middle);
  }
  return values;
}

// Single-kernel tables tell how well a family is known, not how well each parameter is: an interval is never narrower
// than the cross-validated error (80% of a normal spread whose mean absolute value it is: 1.6 times).
void write_parameter(CostParameter& out, const FittedParameter& p, const FamilyFit& fit, bool multiplies_time) {
  out.value = p.value;
  out.lo = p.lo;
  out.hi = p.hi;
  if (multiplies_time && p.value > 0) {
    const double spread = std::exp(1.6 * std::max(fit.range.cross_validated_error, fit.range.mean_error));
    out.lo = std::min(out.lo, p.value / spread);
    out.hi = std::max(out.hi, p.value * spread);
  }
  out.basis = fit.basis;
  out.source = fmt::format("fit of {} points, mean error {:.1f}%, cross-validated {:.1f}%: {}", fit.range.points, 100 * fit.range.mean_error,
                           100 * fit.range.cross_validated_error, fit.source);
}

// Beyond it the points are of several kernels under one name; another GPU's fit says more.
constexpr double largest_error = 0.18;

bool is_rate(const std::string& name) { return name.find("tflops") != std::string::npos || name.find("gbs") != std::string::npos; }

// Six significant digits: files stay readable and bytes do not depend on the last bit of a compiler.
double rounded(double value) { return std::stod(fmt::format("{:.6g}", value)); }

// Four digits, outwards: every point is inside.
double outwards(double value, bool up) {
  if (value <= 0) return value;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3), steps = value / unit;
  return rounded((up ? std::ceil(steps - 1e-9) : std::floor(steps + 1e-9)) * unit);
}

CostRange written(CostRange range) {
  for (double* error : {&range.mean_error, &range.p90_error, &range.cross_validated_error}) *error = std::stod(fmt::format("{:.3g}", *error));
  for (AxisSpan& span : range.spans)
    if (span.given()) span = {outwards(span.lo, false), outwards(span.hi, true)};
  return range;
}

bool enough(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& prior) { return 2 * points.size() >= 3 * parameters_told(form, points, prior); }

bool of_several_forms(const std::vector<FitPoint>& points) {
  return std::any_of(points.begin(), points.end(), [&](const FitPoint& p) { return p.form != points.front().form; });
}

using Families = std::map<std::pair<std::string, std::string>, std::vector<FitPoint>>;  // by model and family

Families families_of(const std::vector<FitPoint>& points, const std::string& gpu) {
  Families families;
  for (const FitPoint& p : points)
    if (p.gpu == gpu) families[{p.model, p.family}].push_back(p);
  return families;
}

}  // namespace

CostFit judge_costs(const CostSpec& prior, const std::string& gpu, const std::vector<FitPoint>& points, const FamilyFitOptions& options) {
  CostFit result{prior, {}, {}, {}};
  for (const auto& [key, members] : families_of(points, gpu)) {
    const auto& [model, family] = key;
    const Form& form = form_of_family(family);
    const bool named = model.empty() || result.costs.models.count(model) > 0;
    auto& home = model.empty() || !named ? result.costs.families : result.costs.models[model].families;
    const auto out = home.find(family);
    if (!named || out == home.end()) {
      result.notes.push_back(fmt::format("{}: not in the cost file", family));
      continue;
    }
    if (of_several_forms(members) || (!members.front().form.empty() && members.front().form != out->second.form)) {
      result.notes.push_back(fmt::format("{}: points of another form than the cost file's", family));
      continue;
    }
    std::vector<double> theta;
    for (const Parameter& p : form.parameters)
      if (const CostParameter* known = prior.find(family, std::string(p.name), model); known || p.optional) theta.push_back(known ? known->value : 0);
    if (theta.size() < form.parameters.size()) {
      result.notes.push_back(fmt::format("{}: the cost file lacks parameters of form {}", family, form.name));
      continue;
    }
    FamilyFit fit{.gpu = gpu, .model = model, .family = family, .form = std::string(form.name), .parameters = {}, .range = range_of(form, members, theta),
                  .median_error = median_error(form, members, theta), .source = {}, .basis = members.front().basis};
    for (std::size_t k = 0; k < theta.size(); ++k) fit.parameters.push_back({std::string(form.parameters[k].name), theta[k], theta[k], theta[k], "kept"});
    if (!std::isfinite(fit.range.mean_error)) {
      result.notes.push_back(fmt::format("{}: its parameters give these points no time", family));
      continue;
    }
    std::optional<CostRange>& range = out->second.range;
    const bool told = enough(form, members, theta), near = fit.range.mean_error <= largest_error;
    if (told) fit.range.cross_validated_error = fit_family(form, members, theta, options).range.cross_validated_error;
    if (told && near) range = written(fit.range);
    else result.notes.push_back(fmt::format("{}: {}; its range stays as it was", family, near ? fmt::format("{} points are too few for a range", members.size())
                                                                                             : fmt::format("the parameters are {:.0f}% off these points", 100 * fit.range.mean_error)));
    result.families.push_back(std::move(fit));
  }
  return result;
}

CostFit fit_costs(const CostSpec& prior, const std::string& gpu, const std::vector<FitPoint>& points, const FamilyFitOptions& options) {
  CostFit result{prior, {}, {}, {}};
  for (const auto& [key, members] : families_of(points, gpu)) {
    const auto& [model, family] = key;
    const Form& form = form_of_family(family);
    const std::vector<double> start = prior_of(prior, form, family, model);
    if (!enough(form, members, start)) {
      result.notes.push_back(fmt::format("{}: {} points only, prior kept", family, members.size()));
      continue;
    }
    const std::string& named = members.front().form;
    if (of_several_forms(members)) {
      result.notes.push_back(fmt::format("{}: points of several forms, prior kept", family));
      continue;
    }
    const FamilyFit fit = fit_family(form, members, start, options);
    if (fit.range.cross_validated_error > largest_error) {
      result.notes.push_back(fmt::format("{}: cross-validated error {:.0f}%, prior kept", family, 100 * fit.range.cross_validated_error));
      continue;
    }
    CostFamily& out = model.empty() ? result.costs.families[family] : result.costs.models[model].families[family];
    if (!named.empty() && out.form != named) {
      if (!out.form.empty()) result.notes.push_back(fmt::format("{}: form is now '{}', was '{}'", family, named, out.form));
      out.form = named;
    }
    if (out.form.empty() || (named.empty() && form.name != exchange_form.name)) out.form = form.name;
    out.range = written(fit.range);
    for (const FittedParameter& p : fit.parameters) {
      if (!p.fallback.empty()) {
        result.notes.push_back(fmt::format("{}.{}: {}, prior kept", family, p.name, p.fallback));
        const bool optional = std::any_of(form.parameters.begin(), form.parameters.end(), [&](const Parameter& x) { return x.name == p.name && x.optional; });
        if (optional || prior.find(family, p.name, model)) continue;
      }
      CostParameter& parameter = out.parameters[p.name];
      write_parameter(parameter, p, fit, is_rate(p.name) || p.name == "t0_us" || p.name == "alpha_us");
      if (!p.fallback.empty()) parameter.basis = Basis::assumed;  // no prior in the file: the form's middle
      for (double* value : {&parameter.value, &parameter.lo, &parameter.hi}) *value = rounded(*value);
    }
    result.families.push_back(fit);
  }
  return result;
}

}  // namespace rackcast::calib
