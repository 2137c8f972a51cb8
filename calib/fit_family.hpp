// Fits one family on one GPU and says how far it may be trusted: cross-validated error, bootstrap intervals, and which
// parameters the points cannot tell (they keep their prior).
#pragma once
#include <string>
#include <vector>

#include "calib/fit_solver.hpp"

namespace rackcast::calib {

struct FittedParameter {
  std::string name;
  double value = 0, lo = 0, hi = 0;  // 10th to 90th percentile of the bootstrap
  std::string fallback;              // why the prior was kept; empty: fitted
};

struct FamilyFit {
  std::string gpu, model, family, form;
  std::vector<FittedParameter> parameters;
  CostRange range;                   // points, errors as fractions, and what they span
  double median_error = 0;
  std::string source;                // of the points, joined
  Basis basis = Basis::published;    // the weakest of the points
};

struct FamilyFitOptions {
  int folds = 5;
  int bootstraps = 200;
  double largest_spread = 2;         // hi/lo beyond this: the points do not determine the parameter
  double largest_hbm_gbs = 0;        // the GPU's specification: a fitted bandwidth beyond it is cache, not memory; 0: any
  std::uint64_t seed = 1;
};

// What the points span, and how the parameters theta meet them.
CostRange range_of(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& theta);
double median_error(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& theta);

// Parameters that the points depend on at all.
std::size_t parameters_told(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& prior);

// prior: start values in the form's order; kept where the points do not decide.
FamilyFit fit_family(const Form& form, const std::vector<FitPoint>& points, const std::vector<double>& prior,
                     const FamilyFitOptions& options = {});

}  // namespace rackcast::calib
