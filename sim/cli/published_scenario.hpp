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
  // What a user waits for beyond the run: front_end_s outside the engine, and decode iterations that pass before an engine
  // takes a request up or sends its first token.
  double front_end_s = 0, waited_iterations = 0, tokens_per_iteration = 1;
};

// Of a request, from the mean time between tokens of its run.
double waited_s(const PublishedScenario& scenario, double tpot_s);

// The row must have been completed (analysis/recipes.hpp).
PublishedScenario scenario_of(const PublishedRow& row, const Catalog& catalog);

}  // namespace rackcast
