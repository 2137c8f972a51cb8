// periodic_sync: every interval all ranks stop, place the experts of all layers anew and move what changed.
// Stall = layers x (slots x plan_per_slot + per_layer + moved slots of a rank x per_slot) + the bytes on their links.
// Published: 0.65 to 1.70 s, mean 0.91 s, for DeepSeek-R1 in NVFP4 on 32 GB200 with 32 redundant experts
// (vllm-project/vllm #43219). Where host cost is published apart it is about 1 s of planning and 20 ms a layer on one
// system and 1 to 2 ms a layer on a tuned one; the defaults lie between and are assumed: a planner in Python at 5 us a
// slot, 8 ms a layer for ranks to agree and swap buffers, and 80 us to post the four tensors of an expert at both ends.
#include "sim/policy/eplb_policy.hpp"

namespace rackcast {

const std::vector<Choice> eplb_paths = {{"host", "out of one GPU into host memory, from there into the other GPU"},
                                        {"nvlink", "from GPU to GPU"}};

void fields(Visitor& v, EplbSyncOptions& o) {
  v.field("plan_per_slot", o.plan_per_slot, "the algorithm's time per expert slot and layer").require(o.plan_per_slot >= Seconds{}, "must be >= 0 s");
  v.field("per_layer", o.per_layer, "host time per layer: ranks agree, buffers change hands").require(o.per_layer >= Seconds{}, "must be >= 0 s");
  v.field("per_slot", o.per_slot, "host time to post one moved expert").require(o.per_slot >= Seconds{}, "must be >= 0 s");
  v.choice("path", o.path, eplb_paths, "the way that weights take");
}

namespace {

class PeriodicSync final : public EplbPlanner {
 public:
  PeriodicSync(const EplbShape& shape, const EplbSyncOptions& options, int interval)
      : EplbPlanner(shape), options_(options), interval_(static_cast<std::uint64_t>(interval)) {}

  ExpertPlacement initial(int, std::span<const double>) const override { return linear(); }
  bool due(std::uint64_t step) const override { return (step + interval_ - (interval_ + 3) / 4) % interval_ == 0; }
  EplbMove move() const override { return EplbMove::stall; }
  EplbCosts costs() const override {
    return {.plan_s = shape().slots * shape().ranks * options_.plan_per_slot.value(), .per_layer_s = options_.per_layer.value(),
            .per_slot_s = options_.per_slot.value(), .path = options_.path};
  }

 private:
  EplbSyncOptions options_;
  std::uint64_t interval_;
};

}  // namespace

std::unique_ptr<EplbPlanner> make_eplb_periodic_sync(const EplbShape& shape, const EplbSyncOptions& options, int interval) {
  return std::make_unique<PeriodicSync>(shape, options, interval);
}

}  // namespace rackcast
