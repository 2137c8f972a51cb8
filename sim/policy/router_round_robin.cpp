#include "sim/policy/router_policies.hpp"

namespace rackcast {

namespace {

class RoundRobin final : public Router {
 public:
  std::uint32_t pick(const RouteQuery&, std::span<const TargetLoad> targets, const PrefixView&) override {
    while (targets[next_ % targets.size()].down) ++next_;
    return static_cast<std::uint32_t>(next_++ % targets.size());
  }

 private:
  std::uint64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Router> make_round_robin() { return std::make_unique<RoundRobin>(); }

}  // namespace rackcast
