// random_replicas: redundant slots hold experts drawn without a look at the load. What redundancy gives by itself, and
// what its weights cost, when nobody balances.
#include "sim/policy/eplb.hpp"
#include "sim/policy/eplb_policy.hpp"

namespace rackcast {

void fields(Visitor& v, EplbRandomOptions& o) { v.field("seed", o.seed, "of the draw"); }

namespace {

class RandomReplicas final : public EplbPlanner {
 public:
  RandomReplicas(const EplbShape& shape, const EplbRandomOptions& options) : EplbPlanner(shape), options_(options) {}
  ExpertPlacement initial(int layer, std::span<const double>) const override {
    return place_random_replicas(shape().experts, shape().ranks, shape().slots, options_.seed * 1000 + static_cast<std::uint64_t>(layer));
  }

 private:
  EplbRandomOptions options_;
};

}  // namespace

std::unique_ptr<EplbPlanner> make_eplb_random_replicas(const EplbShape& shape, const EplbRandomOptions& options) {
  return std::make_unique<RandomReplicas>(shape, options);
}

}  // namespace rackcast
