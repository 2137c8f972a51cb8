#include "calib/fit_form.hpp"

namespace rackcast::calib {

// What a layer costs beyond its operators: known + a0 + a1 rows + a2 for each million tokens of its decode requests' context
const Form layer_form{"layer",
                      {{"a0_us", 1e-6, -100, 200, false}, {"a1_us", 1e-6, -0.5, 2, false},
                       {.name = "a2_us", .scale = 1e-6, .low = 0.1, .high = 1000, .optional = true}},
                      [](const FitPoint& x, const double* theta) {
                        return x.known_s + (theta[0] + theta[1] * x.units + theta[2] * held_context(x) * 1e-6) * 1e-6;
                      },
                      {RangeAxis::rows, RangeAxis::context_mtok}};

}  // namespace rackcast::calib
