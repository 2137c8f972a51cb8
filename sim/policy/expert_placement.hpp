// Which expert lives in which slot of which rank, and what a load vector means for the ranks under it.
// Plain data and pure functions; the algorithms that make placements are in eplb.hpp.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace rackcast {

// One layer. Slot s of rank r is slot_expert[r * slots_per_rank + s].
struct ExpertPlacement {
  int experts = 0;
  int ranks = 0;
  int slots_per_rank = 0;
  std::vector<std::uint16_t> slot_expert;

  std::span<const std::uint16_t> rank(int r) const {
    return {slot_expert.data() + static_cast<std::size_t>(r) * static_cast<std::size_t>(slots_per_rank),
            static_cast<std::size_t>(slots_per_rank)};
  }
};

// Replicas of every expert. At least 1 each, or the placement is not valid.
std::vector<int> replica_counts(const ExpertPlacement& placement);

// Load of every rank when the tokens of an expert spread evenly over its replicas (round robin).
// load: [experts], any unit; result: [ranks], the same unit.
std::vector<double> rank_loads(const ExpertPlacement& placement, std::span<const double> load);

// Load of every rank when each expert's tokens go to the replicas on the lightest ranks first: water filling from the
// round-robin split, the load-aware choice of engines that balance inside a step.
std::vector<double> rank_loads_balanced(const ExpertPlacement& placement, std::span<const double> load);

// (max - mean) / mean over ranks; 0 = perfect. The figure that engines publish.
double imbalance(std::span<const double> loads);

// True when some expert has two replicas on one rank (the second is wasted).
bool replicas_share_a_rank(const ExpertPlacement& placement);

// Slots whose expert differs between two placements of the same shape, by rank: what a rearrangement must move.
// Within a rank order is free: an expert that stays on its rank does not move.
std::vector<int> moved_slots(const ExpertPlacement& from, const ExpertPlacement& to);

}  // namespace rackcast
