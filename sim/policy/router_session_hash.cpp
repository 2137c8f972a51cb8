#include "sim/policy/router_policies.hpp"

#include "sim/base/mix.hpp"

namespace rackcast {

namespace {

// A session's hash says where it goes, whatever is loaded there: sessions fall on targets as chance has it. The next target
// takes over from one that is down.
class SessionHash final : public Router {
 public:
  std::uint32_t pick(const RouteQuery& query, std::span<const TargetLoad> targets, const PrefixView&) override {
    std::uint64_t i = mixed((std::uint64_t{query.play} << 32 | query.lane) + golden_step) % targets.size();
    while (targets[i].down) i = i + 1 < targets.size() ? i + 1 : 0;
    return static_cast<std::uint32_t>(i);
  }
};

}  // namespace

std::unique_ptr<Router> make_session_hash() { return std::make_unique<SessionHash>(); }

}  // namespace rackcast
