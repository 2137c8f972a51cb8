// How many draft tokens a step should verify: the number that gives most kept tokens a second,
//   tokens(L) / seconds(L), tokens(L) = 1 + a1 + a1 a2 + ... (L products), seconds(L) = draft + verify L + 1 tokens a request.
// A step that verifies L of k drafts advances answers by tokens(L) / tokens(k) of what a full step keeps on average.
#pragma once
#include <span>
#include <vector>

namespace rackcast {

// kept[L], seconds[L] for L = 0..k. The least L of equal ones.
inline int best_verify_length(std::span<const double> kept, std::span<const double> seconds) {
  std::size_t best = 0;
  for (std::size_t length = 1; length < kept.size(); ++length)
    if (kept[length] * seconds[best] > kept[best] * seconds[length] * (1 + 1e-9)) best = length;
  return static_cast<int>(best);
}

}  // namespace rackcast
