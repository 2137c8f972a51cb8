// How popular every expert of every layer is, by topic and by simulated time; and draws of what one step's tokens ask for.
// Popularity of layer l, topic t: p = normalise(base_l * exp(spread * g_lt + drift * x_l(time))), g fixed normals, x an
// Ornstein-Uhlenbeck walk with stationary deviation 1, so load wanders but does not run away. A batch mixes topics by
// the requests in it, which makes counts vary more than a multinomial would.
#pragma once
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "sim/policy/expert_options.hpp"

namespace rackcast {

class ExpertPopularity {
 public:
  ExpertPopularity(const ExpertPopularityOptions& options, int layers, int experts, int top_k, std::uint64_t seed);

  int layers() const { return static_cast<int>(base_.size()); }
  int experts() const { return experts_; }
  int top_k() const { return top_k_; }

  // Walks to `time_s` (never back) in fixed steps, so the path does not depend on how often it is asked.
  void advance(double time_s);

  // Mean popularity over topics at the current time: [experts], sums to 1.
  std::vector<double> mean(int layer) const;

  // Share of tokens that choose each expert when the batch's requests fall on topics as `topic_share` (sums to 1):
  // [experts], each in [0, 1], sums to top_k. A token's experts differ: inclusion pi = 1 - exp(-lambda p).
  std::vector<double> inclusion(int layer, std::span<const double> topic_share) const;

  // Topics of `requests` independent requests, as shares.
  std::vector<double> draw_topics(int requests, std::mt19937_64& random) const;

  // Tokens per expert of one layer for a batch of `tokens` tokens: binomial around inclusion(), [experts].
  std::vector<double> draw_counts(int layer, double tokens, std::span<const double> topic_share, std::mt19937_64& random) const;

 private:
  std::vector<double> topic_weights(int layer, int topic) const;
  const std::vector<double>& topic_inclusion(int layer, int topic) const;

  ExpertPopularityOptions options_;
  int experts_, top_k_;
  std::vector<std::vector<double>> base_;                // [layer][expert], log
  std::vector<std::vector<std::vector<float>>> topic_;   // [layer][topic][expert], normals
  std::vector<std::vector<double>> walk_;                // [layer][expert]
  std::vector<std::mt19937_64> walk_random_;             // one stream a layer
  mutable std::vector<std::vector<double>> inclusion_;   // [layer * topics + topic], empty: not computed since the last walk
  double walked_to_s_ = 0;
};

}  // namespace rackcast
