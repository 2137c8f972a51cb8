// periodic_async: every interval a worker places the experts anew and moves them layer by layer into a spare buffer over
// NVLink, under link_share of it, while decoding goes on; a layer's new placement counts once its weights are there. The
// traffic takes its share of the link from the exchange of tokens. Layer time = per_layer + the bytes on their links.
// Published: no longer inter-token times than periodic_sync's (76.9 against 74.9 ms at the 99th percentile,
// vllm-project/vllm #43219). The share and the host time per layer are assumed.
#include "sim/policy/eplb_policy.hpp"

namespace rackcast {

void fields(Visitor& v, EplbAsyncOptions& o) {
  v.field("plan_per_slot", o.plan_per_slot, "the algorithm's time per expert slot and layer").require(o.plan_per_slot >= Seconds{}, "must be >= 0 s");
  v.field("per_layer", o.per_layer, "host time per layer: ranks agree, buffers change hands").require(o.per_layer >= Seconds{}, "must be >= 0 s");
  v.field("link_share", o.link_share, "share of NVLink that the weights may take").require(o.link_share > 0 && o.link_share <= 0.9, "must be in (0, 0.9]");
}

namespace {

class PeriodicAsync final : public EplbPlanner {
 public:
  PeriodicAsync(const EplbShape& shape, const EplbAsyncOptions& options, int interval)
      : EplbPlanner(shape), options_(options), interval_(static_cast<std::uint64_t>(interval)) {}

  ExpertPlacement initial(int, std::span<const double>) const override { return linear(); }
  bool due(std::uint64_t step) const override { return (step + interval_ - (interval_ + 3) / 4) % interval_ == 0; }
  EplbMove move() const override { return EplbMove::background; }
  EplbCosts costs() const override {
    return {.plan_s = shape().slots * shape().ranks * options_.plan_per_slot.value(), .per_layer_s = options_.per_layer.value(),
            .link_share = options_.link_share, .path = EplbPath::nvlink};
  }

 private:
  EplbAsyncOptions options_;
  std::uint64_t interval_;
};

}  // namespace

std::unique_ptr<EplbPlanner> make_eplb_periodic_async(const EplbShape& shape, const EplbAsyncOptions& options, int interval) {
  return std::make_unique<PeriodicAsync>(shape, options, interval);
}

}  // namespace rackcast
