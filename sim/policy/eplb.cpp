#include "sim/policy/eplb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "sim/base/error.hpp"
#include "sim/policy/eplb_pack.hpp"

namespace rackcast {

int slots_per_rank(int experts, int ranks, int redundant) { return (experts + redundant + ranks - 1) / ranks; }

ExpertPlacement place_linear(int experts, int ranks, int slots) {
  RACKCAST_CHECK(experts >= 1 && ranks >= 1 && slots * ranks >= experts, "experts do not fit into the slots");
  ExpertPlacement placement{experts, ranks, slots, {}};
  placement.slot_expert.resize(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(slots));
  for (int s = 0; s < ranks * slots; ++s) placement.slot_expert[static_cast<std::size_t>(s)] = static_cast<std::uint16_t>(s % experts);
  return placement;
}

// Even shares when nothing was counted yet.
static std::vector<double> usable(std::span<const double> load) {
  std::vector<double> result(load.begin(), load.end());
  if (std::accumulate(result.begin(), result.end(), 0.0) <= 0) std::fill(result.begin(), result.end(), 1.0);
  return result;
}

static std::vector<double> per_replica(std::span<const double> load, std::span<const int> replicas) {
  std::vector<double> share(load.size());
  for (std::size_t e = 0; e < load.size(); ++e) share[e] = load[e] / replicas[e];
  return share;
}

// Plain greedy first; when that leaves more than `even_enough`, spares go to just as many experts as leave a whole
// number of unreplicated ones on every rank, and the best is kept.
static std::vector<std::uint16_t> replicate_and_pack(std::span<const double> load, int ranks, int slots) {
  constexpr double even_enough = 0.02;
  const int experts = static_cast<int>(load.size());
  ExpertPlacement best{experts, ranks, slots, {}};
  double best_gap = 0;
  for (int single = slots; single >= std::max(0, slots - 4); --single) {
    const int only = single == slots ? experts : experts - ranks * single;
    if (only <= 0) continue;
    const std::vector<int> replicas = eplb::replicate(load, ranks * slots, ranks, only);
    ExpertPlacement tried{experts, ranks, slots, eplb::pack(per_replica(load, replicas), replicas, ranks, slots)};
    const double gap = imbalance(rank_loads(tried, load));
    if (best.slot_expert.empty() || gap < best_gap) {
      best = std::move(tried);
      best_gap = gap;
    }
    if (best_gap <= even_enough) break;
  }
  return best.slot_expert;
}

ExpertPlacement place_global(std::span<const double> load, int ranks, int slots) {
  const std::vector<double> counted = usable(load);
  return {static_cast<int>(load.size()), ranks, slots, replicate_and_pack(counted, ranks, slots)};
}

ExpertPlacement place_hierarchical(std::span<const double> load, int groups, int nodes, int ranks, int slots) {
  const int experts = static_cast<int>(load.size());
  if (groups < 1 || nodes < 1 || groups % nodes != 0 || experts % groups != 0 || ranks % nodes != 0)
    throw UserError(fmt::format("hierarchical placement needs expert groups ({}) that divide by nodes ({}), experts ({}) that "
                                "divide by groups and ranks ({}) that divide by nodes; use the global placement",
                                groups, nodes, experts, ranks));
  const std::vector<double> counted = usable(load);
  const int group_size = experts / groups, groups_per_node = groups / nodes, node_ranks = ranks / nodes;
  std::vector<double> group_load(static_cast<std::size_t>(groups), 0.0);
  for (int e = 0; e < experts; ++e) group_load[static_cast<std::size_t>(e / group_size)] += counted[static_cast<std::size_t>(e)];
  const std::vector<int> one(static_cast<std::size_t>(groups), 1);
  const std::vector<std::uint16_t> node_groups = eplb::pack(group_load, one, nodes, groups_per_node);

  ExpertPlacement placement{experts, ranks, slots, {}};
  for (int n = 0; n < nodes; ++n) {
    std::vector<std::uint16_t> mine;
    std::vector<double> mine_load;
    for (int g = 0; g < groups_per_node; ++g)
      for (int i = 0; i < group_size; ++i) {
        mine.push_back(static_cast<std::uint16_t>(node_groups[static_cast<std::size_t>(n) * static_cast<std::size_t>(groups_per_node) + static_cast<std::size_t>(g)] * group_size + i));
        mine_load.push_back(counted[mine.back()]);
      }
    for (const std::uint16_t local : replicate_and_pack(mine_load, node_ranks, slots))
      placement.slot_expert.push_back(mine[local]);
  }
  return placement;
}

ExpertPlacement place_random_replicas(int experts, int ranks, int slots, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<int> replicas(static_cast<std::size_t>(experts), 1);
  RACKCAST_CHECK(ranks * slots >= experts && slots <= experts, "experts do not fit into the slots");
  for (int spare = ranks * slots - experts; spare > 0;) {
    int& count = replicas[engine() % static_cast<std::uint64_t>(experts)];
    if (count < ranks) {
      ++count;
      --spare;
    }
  }
  // Equal shares: the draw ignores the load, packing only keeps replicas apart.
  const std::vector<double> equal(static_cast<std::size_t>(experts), 1.0);
  ExpertPlacement placement{experts, ranks, slots, {}};
  placement.slot_expert = eplb::pack(equal, replicas, ranks, slots);
  return placement;
}

ExpertPlacement better_of(const ExpertPlacement& candidate, const ExpertPlacement& fallback, std::span<const double> load) {
  return imbalance(rank_loads(candidate, load)) <= imbalance(rank_loads(fallback, load)) ? candidate : fallback;
}

}  // namespace rackcast
