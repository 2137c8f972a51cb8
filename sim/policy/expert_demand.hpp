// What skewed experts mean for the slowest rank, as ratios to balanced routing: a library of pre-drawn steps per batch
// bucket, so that a step costs a table look-up instead of layers x experts draws. Rebuilt when the placement changes or
// the popularity has drifted; buckets are filled when first asked for.
#pragma once
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "sim/policy/expert_placement.hpp"
#include "sim/policy/expert_popularity.hpp"

namespace rackcast {

enum class ReplicaChoice { round_robin, load_aware };

// Mean over layers of the maximum over ranks, each relative to balanced routing without redundancy:
// rows: tokens x top_k / ranks; touched: E/R x (1 - (1 - k/E)^tokens); ingress: distinct tokens a rank, exact.
struct ExpertDemand {
  double rows = 1;
  double touched = 1;
  double ingress = 1;
};

// One layer, given tokens per expert.
ExpertDemand demand_of_counts(const ExpertPlacement& placement, std::span<const double> counts, double tokens, int top_k,
                              ReplicaChoice choice);

class ExpertDemandLibrary {
 public:
  static constexpr int samples_per_bucket = 8;
  static constexpr int layers_per_sample = 8;   // a rotating subset stands for all layers

  ExpertDemandLibrary(int ranks, double tokens_per_request, ReplicaChoice choice, std::uint64_t seed)
      : ranks_(ranks), tokens_per_request_(tokens_per_request), choice_(choice), random_(seed) {}

  // Forgets every drawn step; keeps references, which must outlive the next draw().
  void reset(const ExpertPopularity& popularity, std::span<const ExpertPlacement> layers);

  // A step of `tokens` tokens in the whole engine: interpolates (log tokens) between the two nearest buckets, the same
  // sample number in both. Buckets are powers of two.
  ExpertDemand draw(double tokens);

 private:
  using Bucket = std::vector<ExpertDemand>;
  const Bucket& bucket(int exponent);
  ExpertDemand sample(double tokens, int first_layer);

  int ranks_;
  double tokens_per_request_;
  ReplicaChoice choice_;
  std::mt19937_64 random_;
  const ExpertPopularity* popularity_ = nullptr;
  std::span<const ExpertPlacement> layers_;
  std::map<int, Bucket> buckets_;
  std::uint32_t next_ = 0;
};

}  // namespace rackcast
