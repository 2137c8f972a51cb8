#include "sim/policy/admission.hpp"

#include "sim/policy/router.hpp"

namespace rackcast {

const std::vector<Choice> over_limits = {{"wait", "requests wait at the door, first come, first served"},
                                         {"refuse", "requests are turned away; open_loop only"}};

void fields(Visitor& v, AdmissionSpec& a) {
  v.field("requests", a.requests, "requests inside the engines at once; 0: no limit").require(a.requests >= 0, "must be >= 0");
  v.field("queued_tokens", a.queued_tokens, "prompt tokens that wait, mean over the ranks that compute prompts; 0: no limit")
      .require(a.queued_tokens.count >= 0, "must be >= 0");
  v.choice("over_limit", a.over_limit, over_limits, "what happens to a request beyond the limits");
}

bool admits(const AdmissionSpec& spec, std::uint64_t inside, std::span<const TargetLoad> targets) {
  if (inside == 0) return true;
  if (spec.requests > 0 && inside >= static_cast<std::uint64_t>(spec.requests)) return false;
  if (spec.queued_tokens.count == 0) return true;
  double queued = 0;
  for (const TargetLoad& target : targets) queued += target.queued_tokens;
  return queued <= static_cast<double>(spec.queued_tokens.count) * static_cast<double>(targets.size());
}

}  // namespace rackcast
