// Which points a calibration run takes, in which order. No GPU.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/family.hpp"

namespace rackcast::calib {

struct PlannedPoint {
  const kernels::Family* family = nullptr;
  kernels::Shape shape;
  int pass = 1;
};

// Every shape of the families' grids, once a pass, families interleaved in a seeded random order within each pass, so
// that drift of the machine does not look like an effect of a shape.
std::vector<PlannedPoint> plan_points(const std::vector<const kernels::Family*>& families, kernels::Grid grid, int passes,
                                      std::uint64_t seed);

// The same order everywhere: std::shuffle's result differs between libraries.
void shuffle_points(std::vector<PlannedPoint>& points, std::uint64_t seed);

// A seeded share of the points (for spot checks of the full grid); at least one a family.
std::vector<PlannedPoint> sample_points(const std::vector<PlannedPoint>& points, double share, std::uint64_t seed);

// UserError with near names for a name that no family has; empty names: all.
std::vector<const kernels::Family*> select_families(const std::vector<std::string>& names);

}  // namespace rackcast::calib
