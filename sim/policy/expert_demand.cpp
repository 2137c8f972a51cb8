#include "sim/policy/expert_demand.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"

namespace rackcast {

const std::vector<Choice> replica_choices = {{"round_robin", "an expert's tokens spread evenly over its replicas"},
                                             {"load_aware", "tokens go to the replicas on the ranks with least to do"}};

namespace {

// Distinct tokens that one of `ranks` ranks sees of `tokens` with top_k of `experts` each, experts spread evenly:
// tokens x (1 - C(E - E/R, k) / C(E, k)).
double balanced_ingress(double tokens, int experts, int ranks, int top_k) {
  const double away = experts - static_cast<double>(experts) / ranks;
  double none = 1;
  for (int i = 0; i < top_k; ++i) none *= std::max(0.0, away - i) / (experts - i);
  return tokens * (1 - none);
}

}  // namespace

std::vector<ExpertDemand> rank_demands(const ExpertPlacement& placement, std::span<const double> counts, double tokens,
                                       int top_k, ReplicaChoice choice) {
  const std::vector<int> replicas = replica_counts(placement);
  const std::vector<double> rows =
      choice == ReplicaChoice::round_robin ? rank_loads(placement, counts) : rank_loads_balanced(placement, counts);
  const double experts = placement.experts, ranks = placement.ranks;
  const double mean_rows = tokens * top_k / ranks;
  const double mean_touched = experts / ranks * -std::expm1(tokens * std::log1p(-std::min(top_k / experts, 1 - 1e-12)));
  const double mean_ingress = balanced_ingress(tokens, placement.experts, placement.ranks, top_k);
  std::vector<ExpertDemand> demands(static_cast<std::size_t>(placement.ranks));
  for (int r = 0; r < placement.ranks; ++r) {
    double touched = 0, absent = 1;
    for (const std::uint16_t expert : placement.rank(r)) {
      const double share = counts[expert] / replicas[expert];
      touched += std::min(1.0, share);
      absent *= 1 - std::min(share / tokens, 1.0);
    }
    const double here = rows[static_cast<std::size_t>(r)];
    demands[static_cast<std::size_t>(r)] = {here / mean_rows, touched / mean_touched, std::min(here, tokens * (1 - absent)) / mean_ingress};
  }
  return demands;
}

ExpertDemand demand_of_counts(const ExpertPlacement& placement, std::span<const double> counts, double tokens, int top_k,
                              ReplicaChoice choice) {
  ExpertDemand most{0, 0, 0};
  for (const ExpertDemand& d : rank_demands(placement, counts, tokens, top_k, choice))
    most = {std::max(most.rows, d.rows), std::max(most.touched, d.touched), std::max(most.ingress, d.ingress)};
  return most;
}

void StepDemand::add_layer(std::span<const ExpertDemand> every_rank) {
  const std::size_t begin = ranks.size();
  ExpertDemand most{0, 0, 0};
  for (std::size_t i = 0; i < every_rank.size(); ++i) {
    const ExpertDemand& d = every_rank[i];
    most = {std::max(most.rows, d.rows), std::max(most.touched, d.touched), std::max(most.ingress, d.ingress)};
    bool exceeded = false;
    for (std::size_t j = 0; j < every_rank.size() && !exceeded; ++j) {
      const ExpertDemand& o = every_rank[j];
      const bool covers = o.rows >= d.rows && o.touched >= d.touched && o.ingress >= d.ingress;
      const bool equal = o.rows == d.rows && o.touched == d.touched && o.ingress == d.ingress;
      exceeded = j != i && covers && (!equal || j < i);  // of equal ranks the first stays
    }
    if (!exceeded) ranks.push_back(d);
  }
  RACKCAST_CHECK(ranks.size() > begin, "a layer without ranks");
  layer_end.push_back(static_cast<std::uint32_t>(ranks.size()));
  const double n = static_cast<double>(layer_end.size());
  mean.rows += (most.rows - mean.rows) / n;
  mean.touched += (most.touched - mean.touched) / n;
  mean.ingress += (most.ingress - mean.ingress) / n;
}

void ExpertDemandLibrary::reset(const ExpertPopularity& popularity, std::span<const ExpertPlacement> layers, Replace replace) {
  RACKCAST_CHECK(!layers.empty() && layers.size() <= static_cast<std::size_t>(popularity.layers()), "a placement for every layer");
  popularity_ = &popularity;
  layers_ = layers;
  replace_ = std::move(replace);
  buckets_.clear();
}

void ExpertDemandLibrary::next_step(std::span<const double> topic_share) {
  ++step_;
  topic_share_.assign(topic_share.begin(), topic_share.end());
}

StepDemand ExpertDemandLibrary::draw(double tokens) {
  const int layers = static_cast<int>(layers_.size()), count = std::min(layers_per_sample, layers);
  StepDemand step;
  step.bucket_tokens = tokens;
  for (int i = 0; i < count; ++i, next_layer_ = (next_layer_ + 1) % layers) {
    const std::vector<double> counts = popularity_->draw_counts(next_layer_, tokens, topic_share_, random_);
    const ExpertPlacement& kept = layers_[static_cast<std::size_t>(next_layer_)];
    step.add_layer(rank_demands(replace_ ? replace_(counts) : kept, counts, tokens, popularity_->top_k(), choice_));
  }
  return step;
}

const StepDemand& ExpertDemandLibrary::at(double tokens) {
  RACKCAST_CHECK(popularity_ != nullptr && step_ > 0, "reset() and next_step() before at()");
  constexpr double golden = 0.6180339887498949;  // multiples of it fill [0, 1) evenly, so no bucket takes a run of steps
  const double position = std::log2(std::max(1.0, tokens));
  const int low = static_cast<int>(std::floor(position));
  const double turn = static_cast<double>(step_) * golden;
  const int exponent = turn - std::floor(turn) < position - low ? low + 1 : low;
  const std::size_t place = step_ % samples_per_bucket;
  Sample& sample = buckets_[exponent][place];
  if (sample.demand.layers() == 0) {
    sample.demand = draw(std::exp2(exponent));
    sample.uses = static_cast<int>(place) * uses_per_sample / samples_per_bucket;  // so that not all are renewed at once
  } else if (sample.used_at != step_ && ++sample.uses >= uses_per_sample) {  // within one step nothing changes
    sample.demand = draw(std::exp2(exponent));
    sample.uses = 0;
  }
  sample.used_at = step_;
  return sample.demand;
}

}  // namespace rackcast
