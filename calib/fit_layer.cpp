#include "calib/fit_form.hpp"

namespace rackcast::calib {

// What a layer costs beyond its operators: known + a0 + a1 rows
const Form layer_form{"layer",
                      {{"a0_us", 1e-6, -100, 200, false}, {"a1_us", 1e-6, -0.5, 2, false}},
                      [](const FitPoint& x, const double* theta) {
                        return x.known_s + (theta[0] + theta[1] * x.units) * 1e-6;
                      },
    {RangeAxis::rows}};

}  // namespace rackcast::calib
