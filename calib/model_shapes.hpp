// The shapes that a model's layers give the kernel families: what --model measures instead of the families' own grids.
// No GPU.
#pragma once
#include <string>
#include <vector>

#include "calib/plan.hpp"
#include "sim/spec/model.hpp"

namespace rackcast::calib {

struct ModelShapes {
  std::vector<PlannedPoint> points;      // each shape once, in the order of a layer
  std::vector<std::string> not_covered;  // parts of the model that no family computes, with the reason
};

// expert_ranks: how many ranks share the experts. full: more token counts.
ModelShapes model_shapes(const ModelSpec& model, int expert_ranks, bool full);

// Reads a model file. UserError with file:line:col.
ModelSpec read_model(const std::string& path);

// The points of these families only (empty: all), once a pass, in a seeded order.
std::vector<PlannedPoint> order_points(std::vector<PlannedPoint> points, const std::vector<const kernels::Family*>& families, int passes,
                                       std::uint64_t seed);

}  // namespace rackcast::calib
