// Points of other GPUs where a GPU has too few of its own: efficiencies carry over, limits do not. Work of their points is
// scaled by the specifications (rate of the family's tensor cores, memory), so that a fit sees the same share of this GPU's
// limits; fixed times and the loop over K stay. Products of matrices only: elsewhere kernels of generations differ more.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "calib/fit_form.hpp"
#include "sim/spec/gpu.hpp"

namespace rackcast::calib {

// The unit whose rate a family's mma_tflops is.
double compute_rate(const GpuSpec& gpu, const std::string& family);

// all: points of every GPU; own: those of `gpu` (family by family, the others' are added with basis transferred). Returns
// the families that got some.
std::vector<std::string> add_siblings(std::vector<FitPoint>& own, const std::vector<FitPoint>& all, const std::string& gpu,
                                      const std::map<std::string, GpuSpec>& specs);

// What `repeated` points find in the cache.
void know_cache(std::vector<FitPoint>& points, const std::map<std::string, GpuSpec>& specs);

}  // namespace rackcast::calib
