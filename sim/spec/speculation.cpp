#include "sim/spec/speculation.hpp"

#include <cmath>

#include "sim/policy/acceptance_tables.hpp"

namespace rackcast {

const std::vector<Choice> verify_policies = {
    {"all", "every step verifies all draft tokens"},
    {"adaptive", "every step verifies as many as give most kept tokens a second, by acceptance and by what the engine's step takes then"}};

const std::vector<Choice>& acceptance_presets() {
  static const std::vector<Choice> presets = [] {
    std::vector<Choice> all = {{"none", "acceptance_length or acceptance say it"}};
    for (const AcceptanceTable& table : acceptance_tables()) all.push_back({table.name, table.meaning});
    return all;
  }();
  return presets;
}

// Mean tokens kept per step: 1 + a1 + a1*a2 + ...
static double tokens_per_step(const std::vector<double>& acceptance) {
  double kept = 1, reached = 1;
  for (const double rate : acceptance) kept += reached *= rate;
  return kept;
}

void fields(Visitor& v, SpeculationSpec& s) {
  v.field("draft_tokens", s.draft_tokens, "drafted per step; a step verifies one more").require(s.draft_tokens >= 0 && s.draft_tokens <= 64, "must be 0 to 64");
  const FieldRule preset = v.choice("preset", s.preset, std::span<const Choice>(acceptance_presets()), "published acceptance by number of draft tokens");
  if (v.reading() && s.preset > 0) {
    const AcceptanceTable& table = acceptance_tables()[static_cast<std::size_t>(s.preset - 1)];
    const std::vector<double> rates = acceptance_of(table, s.draft_tokens);
    preset.require(!rates.empty(), "the table has no length for this number of draft_tokens");
    if (s.acceptance.empty()) s.acceptance = rates;
  }
  bool shares = true;
  for (const double rate : s.acceptance) shares = shares && rate >= 0 && rate <= 1;
  v.field("acceptance", s.acceptance, "chance that a draft token is kept when all before it were, by position; empty: one rate that gives acceptance_length")
      .require(shares, "rates must be in [0, 1]")
      .require(s.acceptance.empty() || s.acceptance.size() == static_cast<std::size_t>(s.draft_tokens), "needs one rate per draft token");
  const double implied = tokens_per_step(s.acceptance);
  if (v.reading() && !s.acceptance.empty()) s.acceptance_length = implied;  // unless the file says it, too
  v.field("acceptance_length", s.acceptance_length, "mean tokens kept per decode step (tau); follows from acceptance where that is given")
      .require(s.acceptance_length >= 1, "must be >= 1")
      .require(s.acceptance_length <= 1 + s.draft_tokens, "must be at most 1 + draft_tokens")
      .require(s.acceptance.empty() || std::abs(implied - s.acceptance_length) <= 0.005 * implied, "contradicts acceptance (1 + a1 + a1*a2 + ...)");
  v.choice("verify", s.verify, verify_policies, "how many of them a step verifies");
}

}  // namespace rackcast
