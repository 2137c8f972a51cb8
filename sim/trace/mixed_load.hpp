// Several loads on one rack at once: each part keeps its own rules, lanes and cached prefixes. The measured phase starts
// when the last part is warm; parts that are ready earlier are held until then.
#pragma once
#include <memory>
#include <vector>

#include "sim/trace/load.hpp"

namespace rackcast {

std::unique_ptr<Load> make_mixed_load(std::vector<std::unique_ptr<Load>> parts);

// Lanes of each part: shares of `lanes`, whole, that add up to it (largest remainders first). Shares need not sum to 1.
std::vector<std::uint32_t> lanes_by_share(std::uint32_t lanes, const std::vector<double>& shares);

}  // namespace rackcast
