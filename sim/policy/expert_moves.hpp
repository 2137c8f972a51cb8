// Who sends which experts to whom when one placement gives way to another.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/policy/expert_placement.hpp"

namespace rackcast {

struct ExpertMove {
  std::uint16_t from = 0, to = 0;  // ranks
  std::uint32_t experts = 0;
};

// One layer. Every expert new to a rank comes from the rank that held it before and has sent least so far; sorted by
// from, to. The sum of `experts` is the sum of moved_slots().
std::vector<ExpertMove> expert_moves(const ExpertPlacement& from, const ExpertPlacement& to);

// The moves of several layers as one list: one entry a pair of ranks.
std::vector<ExpertMove> merge_moves(const std::vector<std::vector<ExpertMove>>& layers);

}  // namespace rackcast
