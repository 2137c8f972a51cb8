#include "calib/fit_form.hpp"

namespace rackcast::calib {

// t0 + bytes/B
const Form stream_form{"stream",
                       {{"t0_us", 1e-6, 0.3, 200}, {"hbm_gbs", 1e9, 10, 20000}},
                       [](const FitPoint& x, const double* theta) { return theta[0] * 1e-6 + x.bytes / (theta[1] * 1e9); },
                       {RangeAxis::mb}};

}  // namespace rackcast::calib
