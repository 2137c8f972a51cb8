// How popular every expert of every layer is, by topic and by simulated time; and draws of what one step's tokens ask for.
// Popularity of layer l, topic t: p = normalise(base_l * exp(spread * g_lt + drift * x_l(time))), g fixed normals, x an
// Ornstein-Uhlenbeck walk with stationary deviation 1, so load wanders but does not run away. A batch mixes topics by
// the requests in it, which makes counts vary more than a multinomial would.
#pragma once
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace rackcast {

enum class ExpertSkew { balanced, zipf, dirichlet, power_law, counts };

struct ExpertPopularityOptions {
  ExpertSkew skew = ExpertSkew::balanced;
  double exponent = 1.0;        // zipf: p ~ rank^-exponent; power_law: density ~ x^-exponent on [1, span]
  double alpha = 1.0;           // dirichlet: concentration; small = skewed
  double span = 6554;           // power_law: largest over smallest weight (0.8 x 8,192 tokens, as published tables draw it)
  int topics = 4;
  double topic_spread = 0.3;    // log-deviation of an expert's popularity between topics
  double drift = 0.1;           // log-deviation of the walk in time; 0 = none
  double drift_time_s = 600;    // time constant of the walk
  std::vector<std::vector<double>> counts = {};  // skew == counts: recorded tokens [layer][expert]
};

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

  ExpertPopularityOptions options_;
  int experts_, top_k_;
  std::vector<std::vector<double>> base_;                // [layer][expert], log
  std::vector<std::vector<std::vector<float>>> topic_;   // [layer][topic][expert], normals
  std::vector<std::vector<double>> walk_;                // [layer][expert]
  std::vector<std::mt19937_64> walk_random_;             // one stream a layer
  double walked_to_s_ = 0;
};

}  // namespace rackcast
