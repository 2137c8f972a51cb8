#include "sim/cost/expert_load.hpp"

#include <algorithm>

#include "sim/policy/eplb.hpp"
#include "sim/policy/expert_demand.hpp"

namespace rackcast {

namespace {

constexpr int drawn_layers = 16;
constexpr int draws_per_layer = 4;

ExpertPlacement place(EplbPolicy policy, std::span<const double> load, int ranks, int slots, std::uint64_t seed) {
  const int experts = static_cast<int>(load.size());
  if (policy == EplbPolicy::none) return place_linear(experts, ranks, slots);
  if (policy == EplbPolicy::random_replicas) return place_random_replicas(experts, ranks, slots, seed);
  return better_of(place_global(load, ranks, slots), place_linear(experts, ranks, slots), load);
}

}  // namespace

ExpertLoad mean_expert_load(const ModelSpec& model, int ranks, EplbPolicy policy, int redundant_experts,
                            const ExpertPopularityOptions& options, double tokens, double tokens_per_request,
                            std::uint64_t seed) {
  const ExpertPopularity popularity(options, drawn_layers, model.experts.count, model.experts.top_k, seed);
  const int slots = slots_per_rank(model.experts.count, ranks, redundant_experts);
  const int requests = std::max(1, static_cast<int>(tokens / std::max(1.0, tokens_per_request)));
  std::mt19937_64 random(seed);
  ExpertDemand sum{0, 0, 0};
  for (int layer = 0; layer < drawn_layers; ++layer) {
    ExpertPlacement placement = place(policy, popularity.mean(layer), ranks, slots, seed + static_cast<std::uint64_t>(layer));
    for (int draw = 0; draw < draws_per_layer; ++draw) {
      const std::vector<double> topics = popularity.draw_topics(requests, random);
      const std::vector<double> counts = popularity.draw_counts(layer, tokens, topics, random);
      if (policy == EplbPolicy::oracle) placement = place(policy, counts, ranks, slots, seed);
      const ExpertDemand d = demand_of_counts(placement, counts, tokens, model.experts.top_k, ReplicaChoice::round_robin);
      sum.rows += d.rows;
      sum.touched += d.touched;
      sum.ingress += d.ingress;
    }
  }
  const double n = drawn_layers * draws_per_layer;
  return {.rows_max = sum.rows / n, .touched_max = sum.touched / n, .ingress_max = sum.ingress / n};
}

}  // namespace rackcast
