#include "sim/policy/expert_placement.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/error.hpp"

namespace rackcast {

std::vector<int> replica_counts(const ExpertPlacement& placement) {
  std::vector<int> counts(static_cast<std::size_t>(placement.experts), 0);
  for (const std::uint16_t expert : placement.slot_expert) ++counts[expert];
  return counts;
}

std::vector<double> rank_loads(const ExpertPlacement& placement, std::span<const double> load) {
  const std::vector<int> counts = replica_counts(placement);
  std::vector<double> loads(static_cast<std::size_t>(placement.ranks), 0.0);
  for (int r = 0; r < placement.ranks; ++r)
    for (const std::uint16_t expert : placement.rank(r))
      loads[static_cast<std::size_t>(r)] += load[expert] / counts[expert];
  return loads;
}

namespace {

// Spreads `rest` over the lightest of `bins` so that they end at one common level; adds to bins, lightest first.
void pour(std::vector<std::pair<double, std::size_t>>& bins, double rest) {
  std::sort(bins.begin(), bins.end());
  double below = 0, level = 0;
  std::size_t used = 1;
  for (; used <= bins.size(); ++used) {
    below += bins[used - 1].first;
    level = (below + rest) / static_cast<double>(used);
    if (used == bins.size() || level <= bins[used].first) break;
  }
  for (std::size_t i = 0; i < used; ++i) bins[i].first = level;
}

}  // namespace

std::vector<double> rank_loads_balanced(const ExpertPlacement& placement, std::span<const double> load) {
  struct Home { std::size_t rank; double share; };
  std::vector<std::vector<Home>> homes(static_cast<std::size_t>(placement.experts));
  for (int r = 0; r < placement.ranks; ++r)
    for (const std::uint16_t expert : placement.rank(r)) homes[expert].push_back({static_cast<std::size_t>(r), 0});
  std::vector<double> loads = rank_loads(placement, load);
  for (std::size_t e = 0; e < homes.size(); ++e)
    for (Home& home : homes[e]) home.share = load[e] / static_cast<double>(homes[e].size());
  // From round robin, each expert in turn is poured anew over its homes; a few sweeps settle it.
  constexpr int sweeps = 3;
  std::vector<std::pair<double, std::size_t>> bins;
  for (int sweep = 0; sweep < sweeps; ++sweep)
    for (std::size_t e = 0; e < homes.size(); ++e) {
      if (homes[e].size() < 2) continue;
      bins.clear();
      for (std::size_t i = 0; i < homes[e].size(); ++i) {
        loads[homes[e][i].rank] -= homes[e][i].share;
        bins.emplace_back(loads[homes[e][i].rank], i);
      }
      pour(bins, load[e]);
      for (const auto& [level, i] : bins) {
        Home& home = homes[e][i];
        home.share = level - loads[home.rank];
        loads[home.rank] = level;
      }
    }
  return loads;
}

double imbalance(std::span<const double> loads) {
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  if (loads.empty() || sum <= 0) return 0.0;
  const double mean = sum / static_cast<double>(loads.size());
  return *std::max_element(loads.begin(), loads.end()) / mean - 1.0;
}

bool replicas_share_a_rank(const ExpertPlacement& placement) {
  for (int r = 0; r < placement.ranks; ++r) {
    std::vector<std::uint16_t> here(placement.rank(r).begin(), placement.rank(r).end());
    std::sort(here.begin(), here.end());
    if (std::adjacent_find(here.begin(), here.end()) != here.end()) return true;
  }
  return false;
}

std::vector<int> moved_slots(const ExpertPlacement& from, const ExpertPlacement& to) {
  RACKCAST_CHECK(from.ranks == to.ranks && from.slots_per_rank == to.slots_per_rank, "placements of different shape");
  std::vector<int> moved(static_cast<std::size_t>(to.ranks), 0);
  for (int r = 0; r < to.ranks; ++r) {
    std::vector<std::uint16_t> had(from.rank(r).begin(), from.rank(r).end());
    std::vector<std::uint16_t> wants(to.rank(r).begin(), to.rank(r).end());
    std::sort(had.begin(), had.end());
    std::sort(wants.begin(), wants.end());
    std::vector<std::uint16_t> fresh;
    std::set_difference(wants.begin(), wants.end(), had.begin(), had.end(), std::back_inserter(fresh));
    moved[static_cast<std::size_t>(r)] = static_cast<int>(fresh.size());
  }
  return moved;
}

}  // namespace rackcast
