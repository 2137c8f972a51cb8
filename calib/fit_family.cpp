#include "calib/fit_family.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "sim/base/error.hpp"

namespace rackcast::calib {

namespace {

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

std::vector<double> all_errors(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& theta) {
  std::vector<int> all(points.size());
  std::iota(all.begin(), all.end(), 0);
  return errors(form, points, all, theta);
}

// Point i belongs to fold i mod folds after a seeded shuffle.
double cross_validated(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& start,
                       const std::vector<bool>& fixed, const FamilyFitOptions& options) {
  const int n = static_cast<int>(points.size());
  const int folds = n < 2 * options.folds ? n : options.folds;  // few points: one out at a time
  std::vector<int> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(options.seed);
  for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
  std::vector<double> all;
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<int> train, test;
    for (int i = 0; i < n; ++i) (i % folds == fold ? test : train).push_back(order[static_cast<std::size_t>(i)]);
    const Solution found = solve(form, points, train, start, fixed, {.starts = 2, .seed = options.seed});
    for (const double error : errors(form, points, test, found.theta)) all.push_back(error);
  }
  return mean(all);
}

std::vector<std::vector<double>> bootstrap(const Form& form, const std::vector<FitPoint>& points,
                                           const std::vector<double>& start, const std::vector<bool>& fixed,
                                           const FamilyFitOptions& options) {
  std::vector<std::vector<double>> draws(form.parameters.size());
  std::mt19937_64 random(options.seed + 1);
  for (int b = 0; b < options.bootstraps; ++b) {
    std::vector<int> chosen(points.size());
    for (int& i : chosen) i = static_cast<int>(random() % points.size());
    const Solution found = solve(form, points, chosen, start, fixed, {.starts = 1, .iterations = 12});
    for (std::size_t k = 0; k < found.theta.size(); ++k) draws[k].push_back(found.theta[k]);
  }
  return draws;
}

std::string why_not(const Parameter& p, double value, double lo, double hi, const FamilyFitOptions& options) {
  if (p.name == "hbm_gbs" && options.largest_hbm_gbs > 0 && value > options.largest_hbm_gbs) return "above the memory's specification";
  const double span = p.positive ? std::log(p.high / p.low) : p.high - p.low;
  const double from_low = p.positive ? std::log(value / p.low) : value - p.low;
  const double from_high = p.positive ? std::log(p.high / value) : p.high - value;
  // p = 1 (additive) and p = 8 (the larger) are meaningful ends, not failures
  if (p.name != "p" && ((from_low < 1e-3 * span && !p.low_end) || from_high < 1e-3 * span)) return "at its bound";
  if (p.positive && p.name != "p" && hi > options.largest_spread * lo) return fmt::format("interval spans {:.1f}x", hi / lo);
  return {};
}

// Expert products measured without their permutation, say, leave the time a row costs open.
bool nothing_depends(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& prior, std::size_t k) {
  std::vector<double> low = prior, high = prior;
  low[k] = form.parameters[k].low;
  high[k] = form.parameters[k].high;
  return std::all_of(points.begin(), points.end(), [&](const FitPoint& x) { return form.seconds(x, low.data()) == form.seconds(x, high.data()); });
}

// Of a maximum, say, it is never the larger part.
bool changes_nothing(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& theta, std::size_t k) {
  std::vector<double> without = theta;
  without[k] = 0;
  return std::all_of(points.begin(), points.end(), [&](const FitPoint& x) { return form.seconds(x, theta.data()) == form.seconds(x, without.data()); });
}

// An optional parameter has no better prior than its absence: a wide interval alone does not drop it when points that were
// left out are met better with it.
bool earns_its_place(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& theta, const std::vector<double>& prior,
                     std::vector<bool> fixed, std::size_t k, const FamilyFitOptions& options) {
  if (!form.parameters[k].optional || prior[k] > 0) return false;
  const double with = cross_validated(form, points, theta, fixed, options);
  fixed[k] = true;
  std::vector<double> without = theta;
  without[k] = prior[k];
  return with < 0.9 * cross_validated(form, points, without, fixed, options);
}

}  // namespace

std::size_t parameters_told(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& prior) {
  std::size_t told = 0;
  for (std::size_t k = 0; k < form.parameters.size(); ++k) told += nothing_depends(form, points, prior, k) ? 0 : 1;
  return told;
}

double median_error(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& theta) { return percentile(all_errors(form, points, theta), 0.5); }

CostRange range_of(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& theta) {
  const std::vector<double> found = all_errors(form, points, theta);
  CostRange range;
  range.points = static_cast<int>(points.size());
  range.mean_error = mean(found);
  range.p90_error = percentile(found, 0.9);
  for (const RangeAxis axis : form.axes) {
    const auto i = static_cast<std::size_t>(axis);
    for (const FitPoint& p : points)
      if (const double value = work_of(p)[i]; value > 0) range.spans[i].widen(value);
  }
  return range;
}

FamilyFit fit_family(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& prior,
                     const FamilyFitOptions& options) {
  RACKCAST_CHECK(prior.size() == form.parameters.size(), "a prior for each parameter");
  if (points.empty()) throw UserError("no points to fit");
  FamilyFit fit;
  fit.gpu = points.front().gpu;
  fit.model = points.front().model;
  fit.family = points.front().family;
  fit.form = std::string(form.name);

  std::vector<int> all(points.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<bool> fixed(prior.size(), false);
  std::vector<std::string> reasons(prior.size());
  const bool one_team = std::all_of(points.begin(), points.end(), [&](const FitPoint& x) { return x.ranks == points.front().ranks; });
  for (std::size_t k = 0; k < prior.size(); ++k)
    if (form.parameters[k].by_ranks && one_team) {
      fixed[k] = true;
      reasons[k] = "one team size only";
    }
  for (std::size_t k = 0; k < prior.size(); ++k)
    if (!fixed[k] && nothing_depends(form, points, prior, k)) {
      fixed[k] = true;
      reasons[k] = "no point depends on it";
    }
  std::vector<double> theta = prior;
  std::vector<std::vector<double>> draws;
  // Drop what the points cannot tell, one parameter at a time, and fit the others again.
  for (std::size_t round = 0; round <= prior.size(); ++round) {
    theta = solve(form, points, all, theta, fixed, {.starts = 48, .seed = options.seed}).theta;
    draws = bootstrap(form, points, theta, fixed, options);
    std::size_t dropped = prior.size();
    double worst = 0;
    for (std::size_t k = 0; k < prior.size(); ++k) {
      if (fixed[k]) continue;
      const double lo = percentile(draws[k], 0.1), hi = percentile(draws[k], 0.9);
      reasons[k] = why_not(form.parameters[k], theta[k], lo, hi, options);
      if (form.parameters[k].optional && changes_nothing(form, points, theta, k)) reasons[k] = "at a value that changes nothing";
      if (reasons[k].starts_with("interval") && earns_its_place(form, points, theta, prior, fixed, k, options)) reasons[k].clear();
      const double badness = reasons[k].empty() ? 0 : reasons[k][0] == 'a' ? 1e9 : hi / lo;  // a bound before a spread
      if (badness > worst) worst = badness, dropped = k;
    }
    if (dropped == prior.size()) break;
    fixed[dropped] = true;
    theta[dropped] = prior[dropped];
  }

  fit.range = range_of(form, points, theta);
  fit.range.cross_validated_error = cross_validated(form, points, theta, fixed, options);
  fit.median_error = median_error(form, points, theta);
  for (std::size_t k = 0; k < prior.size(); ++k)
    fit.parameters.push_back({std::string(form.parameters[k].name), theta[k], std::min(theta[k], percentile(draws[k], 0.1)),
                              std::max(theta[k], percentile(draws[k], 0.9)), fixed[k] ? reasons[k] : ""});

  std::set<std::string> sources;
  fit.basis = Basis::measured;
  for (const FitPoint& x : points) {
    sources.insert(x.source);
    fit.basis = std::max(fit.basis, x.basis);
  }
  for (const std::string& source : sources) fit.source += (fit.source.empty() ? "" : "; ") + source;
  return fit;
}

}  // namespace rackcast::calib
