// Speculative decoding: how many tokens a verify step keeps, and how many steps a request needs for its tokens.
// Draft position i is accepted with probability a_i when all before it were; a step keeps 1 + the accepted ones.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace rackcast {

class Acceptance {
 public:
  Acceptance() = default;  // no speculation: one token a step
  // `per_position` empty: one constant rate for all positions that gives the mean `acceptance_length` (1 + sum of
  // products). acceptance_length must lie in [1, 1 + draft_tokens].
  Acceptance(int draft_tokens, double acceptance_length, std::span<const double> per_position);

  int query_tokens() const { return static_cast<int>(at_least_.size()) + 1; }  // verified per step
  double mean() const { return mean_; }                                          // tau
  double kept(int drafts) const;  // mean tokens of a step that verifies that many
  // Steps until at least `tokens` are kept. Drawn once per request from its own seed. Long requests draw their bulk from
  // the normal limit of the sum, and the rest step by step.
  std::uint32_t steps_for(std::uint32_t tokens, std::uint64_t seed) const;

 private:
  std::vector<double> at_least_;  // [i]: probability that more than i drafts are accepted
  double mean_ = 1;
  double variance_ = 0;
};

}  // namespace rackcast
