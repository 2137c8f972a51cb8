// Files about experts: recorded counts and placement tables, both CSV.
#pragma once
#include <string>
#include <vector>

#include "sim/policy/expert_placement.hpp"

namespace rackcast {

// Columns layer, expert, tokens: tokens [layer][expert]. Layers and experts count from 0; a pair that is absent has 0
// tokens. UserError for negative numbers, two rows for one pair, or a layer without tokens.
std::vector<std::vector<double>> read_expert_counts(const std::string& path);

// Columns layer, rank, slot, expert, complete. One placement a layer.
std::vector<ExpertPlacement> read_placement_table(const std::string& path);
std::string placement_table_text(const std::vector<ExpertPlacement>& layers);

}  // namespace rackcast
