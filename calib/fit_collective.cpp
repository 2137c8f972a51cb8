#include <cmath>

#include "calib/fit_form.hpp"

namespace rackcast::calib {

// a0 + a1 R + (bytes + sqrt(bytes half))/link; all-reduce moves 2 (R-1)/R of the message. half: where the bandwidth is half
// of its end value.
const Form collective_form{"collective",
                           {{"a0_us", 1e-6, 0.1, 100}, {"a1_us", 1e-6, 0, 20, false, true}, {"link_gbs", 1e9, 10, 2000}, {"half_mb", 1e6, 0.001, 500}},
                           [](const FitPoint& x, const double* theta) {
                             return (theta[0] + theta[1] * x.ranks) * 1e-6 +
                                    (x.link_bytes + std::sqrt(x.link_bytes * theta[3] * 1e6)) / (theta[2] * 1e9);
                           },
                           {RangeAxis::link_mb, RangeAxis::ranks}};

}  // namespace rackcast::calib
