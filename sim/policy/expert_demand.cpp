#include "sim/policy/expert_demand.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"

namespace rackcast {

namespace {

double largest(std::span<const double> v) { return *std::max_element(v.begin(), v.end()); }

// Distinct tokens that one of `ranks` ranks sees of `tokens` with top_k of `experts` each, experts spread evenly:
// tokens x (1 - C(E - E/R, k) / C(E, k)).
double balanced_ingress(double tokens, int experts, int ranks, int top_k) {
  const double away = experts - static_cast<double>(experts) / ranks;
  double none = 1;
  for (int i = 0; i < top_k; ++i) none *= std::max(0.0, away - i) / (experts - i);
  return tokens * (1 - none);
}

}  // namespace

ExpertDemand demand_of_counts(const ExpertPlacement& placement, std::span<const double> counts, double tokens, int top_k,
                              ReplicaChoice choice) {
  const std::vector<int> replicas = replica_counts(placement);
  const std::vector<double> rows =
      choice == ReplicaChoice::round_robin ? rank_loads(placement, counts) : rank_loads_balanced(placement, counts);
  double touched = 0, ingress = 0;
  for (int r = 0; r < placement.ranks; ++r) {
    double here = 0, log_absent = 0;
    for (const std::uint16_t expert : placement.rank(r)) {
      const double share = counts[expert] / replicas[expert];
      here += std::min(1.0, share);
      log_absent += std::log1p(-std::min(share / tokens, 1.0 - 1e-12));
    }
    touched = std::max(touched, here);
    ingress = std::max(ingress, -tokens * std::expm1(log_absent));
  }
  const double experts = placement.experts, ranks = placement.ranks;
  return {largest(rows) / (tokens * top_k / ranks), touched / (experts / ranks * -std::expm1(tokens * std::log1p(-top_k / experts))),
          ingress / balanced_ingress(tokens, placement.experts, placement.ranks, top_k)};
}

void ExpertDemandLibrary::reset(const ExpertPopularity& popularity, std::span<const ExpertPlacement> layers) {
  RACKCAST_CHECK(!layers.empty() && layers.size() <= static_cast<std::size_t>(popularity.layers()), "a placement for every layer");
  popularity_ = &popularity;
  layers_ = layers;
  buckets_.clear();
}

ExpertDemand ExpertDemandLibrary::sample(double tokens, int first_layer) {
  const int count = std::min(layers_per_sample, static_cast<int>(layers_.size()));
  const int requests = std::max(1, static_cast<int>(std::lround(tokens / tokens_per_request_)));
  const std::vector<double> topics = popularity_->draw_topics(requests, random_);
  ExpertDemand mean{0, 0, 0};
  for (int i = 0; i < count; ++i) {
    const int layer = (first_layer + i) % static_cast<int>(layers_.size());
    const std::vector<double> counts = popularity_->draw_counts(layer, tokens, topics, random_);
    const ExpertDemand one = demand_of_counts(layers_[static_cast<std::size_t>(layer)], counts, tokens, popularity_->top_k(), choice_);
    mean.rows += one.rows / count;
    mean.touched += one.touched / count;
    mean.ingress += one.ingress / count;
  }
  return mean;
}

const ExpertDemandLibrary::Bucket& ExpertDemandLibrary::bucket(int exponent) {
  Bucket& drawn = buckets_[exponent];
  if (drawn.empty())
    for (int s = 0; s < samples_per_bucket; ++s) drawn.push_back(sample(std::exp2(exponent), s * layers_per_sample));
  return drawn;
}

ExpertDemand ExpertDemandLibrary::draw(double tokens) {
  RACKCAST_CHECK(popularity_ != nullptr, "reset() before draw()");
  if (tokens < 1) return {};
  const double position = std::log2(tokens);
  const int low = static_cast<int>(std::floor(position));
  const double high_share = position - low;
  const std::size_t which = next_++ % samples_per_bucket;
  const ExpertDemand a = bucket(low)[which];
  if (high_share <= 0) return a;
  const ExpertDemand b = bucket(low + 1)[which];
  const auto mix = [&](double x, double y) { return x + high_share * (y - x); };
  return {mix(a.rows, b.rows), mix(a.touched, b.touched), mix(a.ingress, b.ingress)};
}

}  // namespace rackcast
