#include "calib/fit_form.hpp"
#include "sim/cost/forms.hpp"

namespace rackcast::calib {

// t0 + ((flops/F)^p + (bytes/B)^p)^(1/p)
const Form roofline_form{
    "roofline",
    {{"t0_us", 1e-6, 0.3, 200}, {"mma_tflops", 1e12, 10, 20000}, {"hbm_gbs", 1e9, 100, 20000}, {"p", 1, 1, 8}},
    [](const FitPoint& x, const double* theta) {
      return theta[0] * 1e-6 + p_norm(x.flops / (theta[1] * 1e12), x.bytes / (theta[2] * 1e9), theta[3]);
    }};

// The same with a cost per row: padding of a query's tile, permutation of a token
const Form row_form{
    "rows",
    {{"t0_us", 1e-6, 0.3, 200}, {"mma_tflops", 1e12, 10, 20000}, {"hbm_gbs", 1e9, 100, 20000}, {"p", 1, 1, 8}, {"row_ns", 1e-9, 0.01, 1000}},
    [](const FitPoint& x, const double* theta) {
      return theta[0] * 1e-6 + p_norm(x.flops / (theta[1] * 1e12), x.bytes / (theta[2] * 1e9), theta[3]) + theta[4] * 1e-9 * x.units;
    }};

}  // namespace rackcast::calib
