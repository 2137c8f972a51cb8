// What skewed experts mean for the ranks of an engine, as ratios to balanced routing: a library of pre-drawn steps per
// batch bucket, so that a step costs a table look-up instead of layers x experts draws. Forgotten when the placement
// changes or the popularity has drifted; a step is drawn when first asked for, with the topics of the requests then in
// the batch, and drawn anew after some uses, since those requests come and go.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "sim/policy/expert_placement.hpp"
#include "sim/policy/expert_popularity.hpp"

namespace rackcast {

// Relative to balanced routing without redundancy:
// rows: tokens x top_k / ranks; touched: E/R x (1 - (1 - k/E)^tokens); ingress: distinct tokens a rank, exact.
struct ExpertDemand {
  double rows = 1;
  double touched = 1;
  double ingress = 1;
};

// One layer, given tokens per expert: every rank's demand.
std::vector<ExpertDemand> rank_demands(const ExpertPlacement& placement, std::span<const double> counts, double tokens,
                                       int top_k, ReplicaChoice choice);

// The maximum over ranks of each of the three by itself.
ExpertDemand demand_of_counts(const ExpertPlacement& placement, std::span<const double> counts, double tokens, int top_k,
                              ReplicaChoice choice);

// Sampled layers of one step. Of each layer only the ranks that can be slowest are kept: those that no other rank of the
// layer equals or exceeds in all three.
struct StepDemand {
  std::vector<ExpertDemand> ranks;
  std::vector<std::uint32_t> layer_end;  // of layer i in `ranks`
  ExpertDemand mean{0, 0, 0};            // over layers, of the maxima
  double bucket_tokens = 0;              // of the whole engine, that a bucket of steps stands for; 0: drawn for one step alone
  // What sim/cost made of it before: expert time over that of balanced routing, by who asks, how uneven the ranks' own
  // tokens were and what else the links carried. A cache, not state: what it holds depends on nothing else.
  struct Known {
    const void* asker;
    int unevenness;
    double link_taken;
    double ratio;
  };
  mutable std::vector<Known> known{};

  std::size_t layers() const { return layer_end.size(); }
  std::span<const ExpertDemand> layer(std::size_t i) const {
    const std::uint32_t begin = i == 0 ? 0 : layer_end[i - 1];
    return {ranks.data() + begin, layer_end[i] - begin};
  }
  void add_layer(std::span<const ExpertDemand> every_rank);
};

// Where a step's time finds the demand of the tokens that it runs: the same step may ask for several token counts.
class DemandSource {
 public:
  virtual ~DemandSource() = default;
  virtual const StepDemand& at(double tokens) = 0;  // of the whole engine; valid until the next call
};

class ExpertDemandLibrary final : public DemandSource {
 public:
  static constexpr int samples_per_bucket = 8;
  static constexpr int layers_per_sample = 8;   // a rotating subset stands for all layers
  static constexpr int uses_per_sample = 128;   // then it is drawn anew: a bucket lasts about as many steps as a request

  ExpertDemandLibrary(ReplicaChoice choice, std::uint64_t seed) : choice_(choice), random_(seed) {}

  // What a layer's placement becomes once its counts are known (an oracle's).
  using Replace = std::function<ExpertPlacement(std::span<const double> counts)>;

  // Forgets every drawn step; keeps references, which must outlive the next at().
  void reset(const ExpertPopularity& popularity, std::span<const ExpertPlacement> layers, Replace replace = {});

  // topic_share: of the requests in the step, as a session keeps its topic for life.
  void next_step(std::span<const double> topic_share);
  // Buckets are powers of two. Between two of them steps take the one or the other, as often as its nearness (in log
  // tokens) says.
  const StepDemand& at(double tokens) override;

 private:
  struct Sample {
    StepDemand demand;
    std::uint64_t used_at = 0;
    int uses = 0;
  };
  using Bucket = std::array<Sample, samples_per_bucket>;
  StepDemand draw(double tokens);

  ReplicaChoice choice_;
  std::mt19937_64 random_;
  const ExpertPopularity* popularity_ = nullptr;
  std::span<const ExpertPlacement> layers_;
  Replace replace_;
  std::map<int, Bucket> buckets_;
  std::vector<double> topic_share_;
  std::uint64_t step_ = 0;
  int next_layer_ = 0;
};

}  // namespace rackcast
