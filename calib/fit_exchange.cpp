#include <cmath>

#include "calib/fit_form.hpp"

namespace rackcast::calib {

// alpha + gamma log2(R) + max(egress, ingress)/link
const Form exchange_form{"exchange",
                         {{"alpha_us", 1e-6, 1, 100}, {"gamma_us", 1e-6, -5, 20, false, true}, {"link_gbs", 1e9, 10, 2000}},
                         [](const FitPoint& x, const double* theta) {
                           return (theta[0] + theta[1] * std::log2(x.ranks)) * 1e-6 + x.link_bytes / (theta[2] * 1e9);
                         },
                         {RangeAxis::link_mb, RangeAxis::ranks}};

}  // namespace rackcast::calib
