// A published row as a scenario that reproduces it: same model, GPUs, engines and closed loop. What the row does not say
// is a stated rule of this file, never taken from its measured figures.
#pragma once
#include <optional>
#include <string>

#include "analysis/published_rows.hpp"
#include "sim/base/catalog.hpp"

namespace rackcast {

struct PublishedScenario {
  std::string yaml;     // a scenario file
  std::string note;     // what was assumed
  std::string refused;  // why there is none; yaml is empty then
};

// The row must have been completed (analysis/recipes.hpp).
PublishedScenario scenario_of(const PublishedRow& row, const Catalog& catalog);

}  // namespace rackcast
