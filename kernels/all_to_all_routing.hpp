// Which expert each token of each rank goes to, and what that makes every rank send and receive.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/all_to_all_layout.hpp"

namespace rackcast::a2a {

// One rank's tokens of one epoch.
struct RankTokens {
  int tokens = 0;
  std::vector<int32_t> expert;  // [tokens][top_k], global expert index, distinct within a token
  std::vector<float> weight;    // [tokens][top_k], sums to 1
};

// Popularity of experts: "balanced" (uniform), "zipf1.4" (any exponent, hottest expert at a seeded place) or
// "all_to_one" (every token to the experts of rank 0 first). Distinct experts within a token.
RankTokens draw_tokens(const Shape& shape, const std::string& routing, int tokens, uint64_t seed);

// Mean number of distinct ranks that a token's top_k uniformly drawn experts live on.
double expected_copies(int ranks, int experts, int top_k);

// Copies that leave and reach each rank, duplicates within a rank removed, own copies counted apart.
struct Volume {
  std::vector<int64_t> egress, ingress;  // [ranks], copies to and from other ranks
  int64_t copies = 0;                    // all copies, own ones too
  int64_t tokens = 0;
  int64_t egress_max() const;
  int64_t ingress_max() const;
};
Volume volume(const Shape& shape, const std::vector<RankTokens>& ranks);

}  // namespace rackcast::a2a
