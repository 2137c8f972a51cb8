// What an engine step log says beyond the mean: how the host's time scatters and how often the GPU hides it.
#pragma once
#include <vector>

#include "calib/fit_costs.hpp"

namespace rackcast::calib {

// Adds to the fitted family `host`: jitter_us, the mean of an exponential delay on top of h0 + h1 requests (h0 gives its
// median back), and overlap, the share of steps without exposed host time. hidden_steps: rows that showed none.
void describe_host(CostFit& fit, const std::vector<FitPoint>& points, int hidden_steps);

}  // namespace rackcast::calib
