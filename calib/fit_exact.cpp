#include "calib/fit_exact.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "calib/fit_work.hpp"
#include "sim/cost/exact.hpp"

namespace rackcast::calib {

namespace {

struct ExactPoint {
  int rows = 0;
  double ratio = 0;
  Basis basis = Basis::published;
};

// Times of one shape from memory, by the family's form.
class ShapeForm {
 public:
  ShapeForm(const std::string& family, const ExactShape& shape, std::vector<double> theta)
      : form_(form_of_family(family)), shape_(shape), theta_(std::move(theta)),
        type_(family == "dense_bf16" ? WeightType::bf16 : family == "dense_fp8" ? WeightType::fp8 : exact_layers(family) ? WeightType::fp4 : WeightType::nvfp4) {}
  double operator()(double rows) const {
    FitPoint p;
    if (shape_.n > 0) gemm_work(p, rows, shape_.n, shape_.k, type_);
    else fused_expert_work(p, {double(shape_.hidden), double(shape_.intermediate), double(shape_.experts), double(shape_.top_k)}, rows, shape_.ranks, type_);
    return form_.seconds(p, theta_.data());
  }

 private:
  const Form& form_;
  ExactShape shape_;
  std::vector<double> theta_;
  WeightType type_;
};

// What the cost file says; nothing where a parameter is missing.
std::optional<std::vector<double>> parameters_of(const CostSpec& costs, const std::string& family) {
  std::vector<double> theta;
  for (const Parameter& p : form_of_family(family).parameters) {
    const CostParameter* known = costs.find(family, std::string(p.name));
    if (!known && !p.optional) return std::nullopt;
    theta.push_back(known ? known->value : 0);
  }
  return theta;
}

// Four significant digits: a file stays readable, and no table is finer.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

// Rising rows, the fastest of equal ones, and none that has no neighbour near enough.
ExactCurve curve_of(const ExactShape& shape, std::vector<ExactPoint> points) {
  std::sort(points.begin(), points.end(), [](const ExactPoint& a, const ExactPoint& b) { return a.rows != b.rows ? a.rows < b.rows : a.ratio < b.ratio; });
  points.erase(std::unique(points.begin(), points.end(), [](const ExactPoint& a, const ExactPoint& b) { return a.rows == b.rows; }), points.end());
  const auto near = [&](std::size_t i, std::size_t j) { return j < points.size() && std::max(points[i].rows, points[j].rows) <= dense_gap * std::min(points[i].rows, points[j].rows); };
  ExactCurve curve{.shape = shape, .rows = {}, .ratio = {}, .basis = Basis::measured, .source = {}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!near(i, i + 1) && !near(i, i - 1)) continue;
    curve.rows.push_back(points[i].rows);
    curve.ratio.push_back(rounded(points[i].ratio));
    curve.basis = std::max(curve.basis, points[i].basis);
  }
  return curve;
}

// Each inner point from the others, as a step would time it without that point.
void leave_one_out(const ExactCurve& curve, const ShapeForm& form_s, ExactFit& fit) {
  for (std::size_t i = 1; i + 1 < curve.rows.size(); ++i) {
    std::vector<ExactPoint> others;
    for (std::size_t j = 0; j < curve.rows.size(); ++j)
      if (j != i) others.push_back({curve.rows[j], curve.ratio[j]});
    const ExactTimes times(curve_of(curve.shape, std::move(others)), form_s);
    const double rows = curve.rows[i], by_form = form_s(rows), time = by_form * curve.ratio[i];
    fit.interpolated_error += std::abs((times.empty() ? by_form : times.seconds(rows, by_form)) / time - 1);
    fit.form_error += std::abs(by_form / time - 1);
    ++fit.inner;
  }
}

using Sources = std::map<std::string, std::vector<ExactPoint>>;

const Sources::value_type& best_of(const Sources& sources) {
  const auto worth = [](const Sources::value_type& s) { return std::pair(-static_cast<int>(s.second.front().basis), s.second.size()); };
  return *std::max_element(sources.begin(), sources.end(), [&](const auto& a, const auto& b) { return worth(a) < worth(b); });
}

ExactFit fit_one(CostSpec& costs, const std::string& family, const std::vector<const FitPoint*>& points, const std::vector<double>& theta, bool same_form) {
  ExactFit fit{.family = family};
  const Form& form = form_of_family(family);
  const CostParameter* cache = costs.find(family, "l2_gbs");
  std::map<ExactShape, Sources> shapes;
  for (const FitPoint* p : points) {
    const bool from_cache = p->repeated && p->bytes <= p->cache_bytes;
    if (from_cache && (!cache || cache->value <= 0)) {
      ++fit.cached;
      continue;
    }
    shapes[p->exact][p->source].push_back(
        {static_cast<int>(p->rows), p->time_s / form.seconds(*p, theta.data()), from_cache ? std::max(p->basis, cache->basis) : p->basis});
  }
  std::vector<ExactCurve> curves;
  for (const auto& [shape, sources] : shapes) {
    const auto& [source, members] = best_of(sources);
    ExactCurve curve = curve_of(shape, members);
    if (curve.rows.empty()) continue;
    curve.source = source;
    leave_one_out(curve, ShapeForm(family, shape, theta), fit);
    fit.points += static_cast<int>(curve.rows.size());
    curves.push_back(std::move(curve));
  }
  fit.curves = static_cast<int>(curves.size());
  if (fit.inner > 0) {
    fit.interpolated_error /= fit.inner;
    fit.form_error /= fit.inner;
  }
  fit.written = fit.inner > 0 && fit.interpolated_error < fit.form_error;
  std::vector<ExactCurve>& known = costs.families[family].exact;
  if (!same_form) known.clear();
  if (!fit.written) return fit;
  for (ExactCurve& curve : curves) {
    std::erase_if(known, [&](const ExactCurve& old) { return old.shape == curve.shape; });
    known.push_back(std::move(curve));
  }
  std::sort(known.begin(), known.end(), [](const ExactCurve& a, const ExactCurve& b) { return a.shape < b.shape; });
  return fit;
}

}  // namespace

std::vector<ExactFit> fit_exact(CostSpec& costs, const std::string& gpu, const std::vector<FitPoint>& points, bool same_form) {
  std::map<std::string, std::vector<const FitPoint*>> families;
  for (const FitPoint& p : points)
    if (p.gpu == gpu && p.model.empty() && p.exact != ExactShape{} && p.basis != Basis::transferred && (exact_matrices(p.family) || exact_layers(p.family))) families[p.family].push_back(&p);
  std::vector<ExactFit> fits;
  for (const auto& [family, members] : families)
    if (const auto theta = parameters_of(costs, family)) fits.push_back(fit_one(costs, family, members, *theta, same_form));
  return fits;
}

}  // namespace rackcast::calib
