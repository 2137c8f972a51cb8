#include <cmath>

#include "calib/fit_form.hpp"
#include "sim/cost/forms.hpp"

namespace rackcast::calib {

// t0 + tb log2(R) + ((bytes/B)^p + (flops/F)^p + (link bytes/N)^p)^(1/p) + reduced bytes at copy speed. g, the scale of
// a whole step, is not a matter of kernel tables: it stays 1 here.
const Form fused_form{
    "fused",
    {{"t0_us", 1e-6, 5, 300}, {"tb_us", 1e-6, -20, 20, false, true}, {"hbm_gbs", 1e9, 500, 12000}, {"mma_tflops", 1e12, 100, 10000},
     {"link_gbs", 1e9, 50, 1800}, {"p", 1, 1, 8}},
    [](const FitPoint& x, const double* theta) {
      constexpr double reduce_bytes_per_s = 6.5e12;  // moe_fused.reduce_gbs of the cost files
      const double overlapped = p_norm(p_norm(x.bytes / (theta[2] * 1e9), x.flops / (theta[3] * 1e12), theta[5]),
                                       x.link_bytes / (theta[4] * 1e9), theta[5]);
      return (theta[0] + theta[1] * std::log2(x.ranks)) * 1e-6 + overlapped + x.reduce_bytes / reduce_bytes_per_s;
    },
    {RangeAxis::gflop, RangeAxis::mb, RangeAxis::link_mb, RangeAxis::ranks}};

}  // namespace rackcast::calib
