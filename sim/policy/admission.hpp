// Admission: how much may be inside the engines before new requests wait at the door, in order of arrival, or are turned
// away. Counted over the whole deployment.
#pragma once
#include <cstdint>
#include <span>

#include "sim/base/schema.hpp"

namespace rackcast {

struct TargetLoad;

enum class OverLimit { wait, refuse };
extern const std::vector<Choice> over_limits;

struct AdmissionSpec {
  int requests = 0;          // inside at once; 0: no limit
  Tokens queued_tokens{0};   // prompt tokens that wait, mean over the ranks that compute prompts; 0: no limit
  OverLimit over_limit = OverLimit::wait;
  bool limits() const { return requests > 0 || queued_tokens.count > 0; }
};
void fields(Visitor& v, AdmissionSpec& a);

// May one more come in? Always when nothing is inside.
bool admits(const AdmissionSpec& spec, std::uint64_t inside, std::span<const TargetLoad> targets);

}  // namespace rackcast
