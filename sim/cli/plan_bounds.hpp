// What an engine can compute at most, from its step model alone: the bounds by which `plan` drops deployments that it
// never simulates.
#pragma once
#include "sim/base/catalog.hpp"
#include "sim/spec/scenario.hpp"

namespace rackcast {

// Of the load, as simulations of it have shown. Bounds rest on the kindest of them.
struct TokenMix {
  double cache_hit = 0;      // highest share of the input that any cache could have held
  double output_share = 1;   // lowest share of output in all tokens
};

// No deployment of its kind serves more tokens (input incl. cached + output) a second, all engines together: prompts are
// taken as short as they can be, every rank as full as it may be, and nothing waits.
double most_tokens_per_s(const Scenario& scenario, const Catalog& catalog, const TokenMix& mix);

}  // namespace rackcast
