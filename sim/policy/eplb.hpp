// Expert-parallel load balancing: load vector in, placement out. Layers are independent; call once a layer.
// Algorithm (after deepseek-ai/EPLB, in our words): give spare slots one by one to the expert with the most load per
// replica, then pack replicas, heaviest first, into the lightest rank with a free slot that does not hold that expert
// yet; ours then improves the result by swaps between the heaviest rank and the others.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/policy/expert_placement.hpp"

namespace rackcast {

// Slots a rank that hold `experts` plus at least `redundant` replicas on `ranks` ranks: ceil((E + redundant) / R).
int slots_per_rank(int experts, int ranks, int redundant);

// Experts in order, one after the other; slots left over (experts do not divide by ranks, or redundancy asked of a
// policy that does not use the load) hold replicas of the first experts, on other ranks than their first home.
ExpertPlacement place_linear(int experts, int ranks, int slots);

// Balanced on the whole engine. load: [experts], >= 0; all zero counts as uniform.
ExpertPlacement place_global(std::span<const double> load, int ranks, int slots);

// Groups of experts are packed onto nodes first, then each node balances its own: keeps group-limited routing inside a
// node. Needs groups % nodes == 0, experts % groups == 0, ranks % nodes == 0; UserError otherwise.
ExpertPlacement place_hierarchical(std::span<const double> load, int groups, int nodes, int ranks, int slots);

// Spare slots hold uniformly drawn experts.
ExpertPlacement place_random_replicas(int experts, int ranks, int slots, std::uint64_t seed);

// Never worse than place_linear on the given load: the better of the two by the heaviest rank.
ExpertPlacement better_of(const ExpertPlacement& candidate, const ExpertPlacement& fallback, std::span<const double> load);

}  // namespace rackcast
