// Robust least squares for positive times: residual log(predicted / measured), soft-L1 loss, bounds, many starts.
// Levenberg-Marquardt with a numeric Jacobian; the parameters are few and the forms cheap.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "calib/fit_form.hpp"

namespace rackcast::calib {

struct SolverOptions {
  int starts = 12;              // the first from `start`, the others drawn between the bounds
  int iterations = 60;
  double soft = 0.1;            // residuals beyond this count linearly
  std::uint64_t seed = 1;
};

struct Solution {
  std::vector<double> theta;    // in the form's order and the file's units
  double loss = 0;
};

// points: indices into all; fixed[i]: parameter i stays at start[i].
Solution solve(const Form& form, const std::vector<FitPoint>& all, std::span<const int> points,
               const std::vector<double>& start, const std::vector<bool>& fixed, const SolverOptions& options = {});

// |predicted / measured - 1| of each point.
std::vector<double> errors(const Form& form, const std::vector<FitPoint>& all, std::span<const int> points,
                           const std::vector<double>& theta);

}  // namespace rackcast::calib
