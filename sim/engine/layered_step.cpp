#include "sim/engine/layered_step.hpp"

#include <algorithm>
#include <cmath>

namespace rackcast {

double expected_maximum(std::span<const double> means, std::span<const double> deviations) {
  constexpr int points = 400;
  constexpr double reach = 7;  // standard deviations; beyond, less than 1 in 10^11
  double low = -INFINITY, high = -INFINITY;  // the maximum lies between them
  for (std::size_t i = 0; i < means.size(); ++i) {
    low = std::max(low, means[i] - reach * deviations[i]);
    high = std::max(high, means[i] + reach * deviations[i]);
  }
  const double step = (high - low) / points;
  double integral = 0;
  for (int i = 0; i < points; ++i) {  // midpoints
    const double x = low + (i + 0.5) * step;
    double below = 1;
    for (std::size_t k = 0; k < means.size(); ++k)
      if (deviations[k] > 0) below *= 0.5 * std::erfc(-(x - means[k]) / deviations[k] / std::sqrt(2.0));
    integral += (1 - below) * step;
  }
  return low + integral;
}

double expected_maximum(std::span<const double> means, double jitter) {
  std::vector<double> deviations;
  for (const double mean : means) deviations.push_back(jitter * mean);
  return expected_maximum(means, deviations);
}

void LayeredStep::plan(const StepModel& model, std::span<const RankBatch> batch, const ExpertLoad& load, StepTime& collapsed) {
  // A rank's own time between exchanges: what the step would take on that side if all ranks were like it.
  rank_s_.clear();
  for (const RankBatch& rank : batch) {
    alike_.assign(batch.size(), rank);
    const StepTime time = model.step(alike_, load);
    rank_s_.push_back((time.attention_s + time.other_s) / layers_);
  }
  collapsed_s_ = collapsed.total_s;
  durations_s_.assign(layers_, collapsed.moe_s / layers_);
  const std::vector<double> experts = model.expert_layers(batch, load);  // around 1; a step's sampled layers stand for all
  double sampled = 0;
  for (std::size_t l = 0; l < layers_ && !experts.empty(); ++l) sampled += experts[l % experts.size()] / layers_;
  for (std::size_t l = 0; l < layers_ && !experts.empty(); ++l) durations_s_[l] *= experts[l % experts.size()] / sampled;
  std::normal_distribution<double> normal;
  double sum = 0;
  for (double& duration : durations_s_) {
    double slowest = 0;
    for (const double mean : rank_s_) slowest = std::max(slowest, mean * (1 + jitter * normal(random_)));
    duration += slowest;
    sum += slowest;
  }
  durations_s_.back() += collapsed.head_s + collapsed.draft_s + collapsed.host_s;
  const double difference = sum - collapsed.attention_s - collapsed.other_s;
  collapsed.attention_s += difference;
  collapsed.total_s += difference;
  at_ = 0;
}

bool LayeredStep::next(double& duration_s) {
  if (at_ == durations_s_.size()) return false;
  duration_s = durations_s_[at_++];
  return true;
}

double LayeredStep::expected_ratio() const {
  const double slowest = *std::max_element(rank_s_.begin(), rank_s_.end());
  return 1 + layers_ * (expected_maximum(rank_s_, jitter) - slowest) / collapsed_s_;
}

}  // namespace rackcast
