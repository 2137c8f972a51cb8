// none: experts in the checkpoint's order; redundant slots, if there are any, hold copies of the first experts.
#include "sim/policy/eplb_policy.hpp"

namespace rackcast {

namespace {

class None final : public EplbPlanner {
 public:
  using EplbPlanner::EplbPlanner;
  ExpertPlacement initial(int, std::span<const double>) const override { return linear(); }
};

}  // namespace

std::unique_ptr<EplbPlanner> make_eplb_none(const EplbShape& shape) { return std::make_unique<None>(shape); }

}  // namespace rackcast
