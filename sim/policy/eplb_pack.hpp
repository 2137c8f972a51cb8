// The two steps shared by the global and the hierarchical placement: replicate, then pack.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace rackcast::eplb {

// Replicas per expert (>= 1, <= most) that sum to `slots`, each spare slot given to the expert with most load a replica.
// only: how many of the heaviest experts may get spares (as many more as the spares need if that is too few). Nearly
// even loads need it: 256 equal experts in 360 slots of 72 ranks are uneven in ones and halves by 13%, but when just 40
// of them share all spares every rank holds three ones and two small shares.
std::vector<int> replicate(std::span<const double> load, int slots, int most, int only);

// Packs every replica into ranks x slots, equal cardinality. share[e] = load of one replica of e. Result rank-major.
std::vector<std::uint16_t> pack(std::span<const double> share, std::span<const int> replicas, int ranks, int slots);

}  // namespace rackcast::eplb
