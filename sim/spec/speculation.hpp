// Speculative decoding: how many tokens are drafted, how many of them are kept, and how many are verified.
#pragma once
#include <vector>

#include "sim/base/schema.hpp"

namespace rackcast {

enum class VerifyPolicy { all, adaptive };
extern const std::vector<Choice> verify_policies;
const std::vector<Choice>& acceptance_presets();  // "none", then the tables of sim/policy/acceptance_tables

struct SpeculationSpec {
  int draft_tokens = 0;               // at most 1 + draft_tokens are verified per step
  int preset = 0;                     // row of acceptance_presets
  double acceptance_length = 1.0;     // tau: mean tokens kept per decode step, 1 + sum of products of acceptance
  std::vector<double> acceptance;     // per position; empty: constant rate that gives acceptance_length
  VerifyPolicy verify = VerifyPolicy::all;
};
void fields(Visitor& v, SpeculationSpec& s);

}  // namespace rackcast
