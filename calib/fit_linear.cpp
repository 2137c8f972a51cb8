#include "calib/fit_form.hpp"

namespace rackcast::calib {

// Host work of an engine step: h0 + h1 requests
const Form linear_form{"linear",
                       {{"h0_us", 1e-6, 1, 1e5}, {"h1_us", 1e-6, 0.01, 1e3}},
                       [](const FitPoint& x, const double* theta) { return (theta[0] + theta[1] * x.units) * 1e-6; },
                       {RangeAxis::rows}};

// One batch of KV descriptors: what a batch costs, descriptors (post + execute are one here), bytes at the link's rate. The
// control messages of a hand-over (control_us) are no part of it.
const Form descriptor_form{"descriptors",
                           {{"transfer_us", 1e-6, 1, 1e6}, {"execute_us", 1e-6, 0.01, 100}, {"link_gbs", 1e9, 1, 2000}},
                           [](const FitPoint& x, const double* theta) {
                             return (theta[0] + theta[1] * x.units) * 1e-6 + x.link_bytes / (theta[2] * 1e9);
                           },
                           {RangeAxis::link_mb, RangeAxis::rows}};

}  // namespace rackcast::calib
