// oracle: every step's experts lie where its own counts want them, for free. No engine can do that; it bounds what any
// placement can win.
#include "sim/policy/eplb_policy.hpp"

namespace rackcast {

namespace {

class Oracle final : public EplbPlanner {
 public:
  using EplbPlanner::EplbPlanner;
  ExpertPlacement initial(int, std::span<const double> profile) const override { return balanced(profile); }
  bool every_step() const override { return true; }
};

}  // namespace

std::unique_ptr<EplbPlanner> make_eplb_oracle(const EplbShape& shape) { return std::make_unique<Oracle>(shape); }

}  // namespace rackcast
