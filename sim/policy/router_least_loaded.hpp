// The least loaded target; ties go round, so that an idle rack is used evenly. Other routers begin or end with it.
#pragma once
#include "sim/policy/router.hpp"

namespace rackcast {

class LeastLoaded final : public Router {
 public:
  explicit LeastLoaded(BalancePolicy balance) : balance_(balance) {}
  std::uint32_t pick(const RouteQuery& query, std::span<const TargetLoad> targets, const PrefixView& prefixes) override;

 private:
  bool less(const TargetLoad& a, const TargetLoad& b) const;

  BalancePolicy balance_;
  std::uint64_t turn_ = 0;
};

}  // namespace rackcast
