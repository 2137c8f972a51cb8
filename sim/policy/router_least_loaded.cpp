#include "sim/policy/router_least_loaded.hpp"

namespace rackcast {

std::uint32_t LeastLoaded::pick(const RouteQuery&, std::span<const TargetLoad> targets, const PrefixView&) {
  const std::size_t count = targets.size();
  const std::size_t start = turn_++ % count;
  std::size_t best = start;
  for (std::size_t k = 1; k < count; ++k) {
    const std::size_t i = start + k < count ? start + k : start + k - count;
    if (less(targets[i], targets[best])) best = i;
  }
  return static_cast<std::uint32_t>(best);
}

bool LeastLoaded::less(const TargetLoad& a, const TargetLoad& b) const {
  if (a.down != b.down) return b.down;
  if (balance_ == BalancePolicy::count && a.requests != b.requests) return a.requests < b.requests;
  if (a.queued_tokens != b.queued_tokens) return a.queued_tokens < b.queued_tokens;
  return a.requests < b.requests;
}

}  // namespace rackcast
