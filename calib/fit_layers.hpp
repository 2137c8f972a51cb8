// Composites of whole layers: what a layer's measured time holds beyond its operators under a cost file.
#pragma once
#include <vector>

#include "calib/fit_form.hpp"
#include "sim/spec/gpu.hpp"
#include "sim/spec/model.hpp"

namespace rackcast::calib {

// Sets known_s of points of families composite_*: the operators of one layer of that kind, without experts and mHC,
// which the published layers do not hold. Earlier composites in `costs` are left out.
void explain_layers(std::vector<FitPoint>& points, const CostSpec& costs, const ModelSpec& model, const GpuSpec& gpu);

}  // namespace rackcast::calib
