// Exact points of matrices and layers of experts: measured times that win over a family's fitted form where they are dense (sim/cost/exact.hpp).
// What is written is measured time over the form's, the form taking weights from where the measured launch had them (memory,
// or L2 where a table times a kernel again and again): in a step, the same ratio then stands on the time from memory.
#pragma once
#include <string>
#include <vector>

#include "calib/fit_form.hpp"

namespace rackcast::calib {

struct ExactFit {
  std::string family;
  int curves = 0, points = 0;       // shapes with neighbours that are dense, and their points
  int inner = 0;                    // points with neighbours on both sides, left out in turn
  double interpolated_error = 0, form_error = 0;  // mean error on those: from the other points, and by the form
  int cached = 0;                   // points not taken: L2 may have held them, and the family has no rate of it
  bool written = false;             // the other points met those left out better than the form did
};

// Writes the families' exact points into `costs`, in place of those they had, or removes them where they are worse than the
// form. same_form: the parameters are those that the file's curves are ratios to, so that curves of other shapes stay, and all
// where the form is better. Points scaled from other GPUs are not exact. Of several sources of one shape the best basis counts,
// then the most points.
std::vector<ExactFit> fit_exact(CostSpec& costs, const std::string& gpu, const std::vector<FitPoint>& points, bool same_form = false);

}  // namespace rackcast::calib
