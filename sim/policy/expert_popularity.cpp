#include "sim/policy/expert_popularity.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <boost/random/normal_distribution.hpp>

#include "sim/base/error.hpp"

namespace rackcast {

const std::vector<Choice> expert_skews = {{"balanced", "all experts alike and no sampling: every rank does the same"},
                                          {"zipf", "p ~ rank^-exponent, in a random order per layer"},
                                          {"dirichlet", "p ~ Dirichlet(alpha) per layer"},
                                          {"power_law", "weights of density x^-exponent on [1, span] per layer"},
                                          {"counts", "recorded tokens per layer and expert"}};

void fields(Visitor& v, ExpertLoadSpec& e) {
  ExpertPopularityOptions& o = e.popularity;
  v.choice("skew", o.skew, expert_skews, "how popular the experts of a layer are");
  v.field("exponent", o.exponent, "zipf, power_law: the exponent").require(o.exponent >= 0 && o.exponent <= 10, "must be 0 to 10");
  v.field("alpha", o.alpha, "dirichlet: concentration; small is skewed").require(o.alpha > 0, "must be > 0");
  v.field("span", o.span, "power_law: largest weight over smallest").require(o.span > 1, "must be > 1");
  v.field("counts", e.counts_file, "counts: CSV file with the columns layer, expert, tokens")
      .require(o.skew != ExpertSkew::counts || !e.counts_file.empty(), "names the file that skew: counts needs");
  v.field("draft_counts", e.draft_counts_file, "counts: the same for the draft model; empty: its experts are alike");
  v.field("topics", o.topics, "kinds of sessions; each has experts of its own that it likes").require(o.topics >= 1 && o.topics <= 64, "must be 1 to 64");
  v.field("topic_spread", o.topic_spread, "log-deviation of an expert's popularity between topics").require(o.topic_spread >= 0, "must be >= 0");
  v.field("drift", o.drift, "log-deviation of an expert's popularity in time; 0: none").require(o.drift >= 0, "must be >= 0");
  Seconds time(o.drift_time_s);
  v.field("drift_time", time, "time in which the popularity drifts away").require(time.value() > 0, "must be > 0 s");
  o.drift_time_s = time.value();
}

namespace {

constexpr double walk_step_s = 10;
constexpr double normal_from = 100;    // variance of a binomial from which its normal limit stands for it (skewness below 0.1)
constexpr double expansion_from = 10;  // and from which the limit with its first correction does, rounded

double normal(std::mt19937_64& random) { return boost::random::normal_distribution<double>()(random); }  // a ziggurat: no logarithms

// log(1 - chance) to 1e-9 of itself. Below 2% the series does, four times as fast as log1p.
double log_of_rest(double chance) {
  if (chance >= 0.02) return std::log1p(-chance);
  return -chance * (1 + chance * (1.0 / 2 + chance * (1.0 / 3 + chance * (1.0 / 4 + chance / 5))));
}

constexpr auto reciprocals = [] {
  std::array<double, 64> of{};
  for (std::size_t i = 1; i < of.size(); ++i) of[i] = 1.0 / static_cast<double>(i);
  return of;
}();

double binomial(double tokens, double chance, std::mt19937_64& random) {
  const double mean = tokens * chance, variance = mean * (1 - chance);
  if (variance >= normal_from) return std::clamp(mean + std::sqrt(variance) * normal(random), 0.0, tokens);
  tokens = std::round(tokens);
  if (variance >= expansion_from) {  // Cornish-Fisher: z + skewness (z^2 - 1) / 6
    const double z = normal(random);
    return std::clamp(std::round(mean + std::sqrt(variance) * z + (1 - 2 * chance) * (z * z - 1) / 6), 0.0, tokens);
  }
  if (chance > 0.5) return tokens - binomial(tokens, 1 - chance, random);
  // Inversion: walks up the cumulative distribution, `mean` steps on average.
  const double odds = chance / (1 - chance);
  double at = std::exp(tokens * log_of_rest(chance)), rest = static_cast<double>(random() >> 11) * 0x1p-53 - at, left = tokens;
  std::size_t count = 0;
  while (rest >= 0 && left > 0) {
    ++count;
    at *= odds * left * (count < reciprocals.size() ? reciprocals[count] : 1.0 / static_cast<double>(count));
    rest -= at;
    --left;
  }
  return static_cast<double>(count);
}

std::vector<double> base_weights(const ExpertPopularityOptions& o, int layer, int experts, std::mt19937_64& random) {
  std::vector<double> weight(static_cast<std::size_t>(experts), 1.0);
  switch (o.skew) {
    case ExpertSkew::balanced: return weight;
    case ExpertSkew::counts: {
      RACKCAST_CHECK(static_cast<std::size_t>(layer) < o.counts.size(), "counts for every layer");
      weight = o.counts[static_cast<std::size_t>(layer)];
      for (double& w : weight) w = std::max(w, 0.5);  // an expert that was never seen is rare, not impossible
      return weight;
    }
    case ExpertSkew::zipf:
      for (int e = 0; e < experts; ++e) weight[static_cast<std::size_t>(e)] = std::pow(e + 1.0, -o.exponent);
      break;
    case ExpertSkew::dirichlet: {
      std::gamma_distribution<double> gamma(o.alpha, 1.0);
      for (double& w : weight) w = std::max(gamma(random), 1e-9);
      break;
    }
    case ExpertSkew::power_law: {
      // Inverse CDF of a density x^-a truncated to [1, span].
      const double a = 1.0 - o.exponent;
      for (double& w : weight) {
        const double u = std::uniform_real_distribution<double>()(random);
        w = std::abs(a) < 1e-9 ? std::pow(o.span, u) : std::pow((std::pow(o.span, a) - 1.0) * u + 1.0, 1.0 / a);
      }
      break;
    }
  }
  std::shuffle(weight.begin(), weight.end(), random);
  return weight;
}

}  // namespace

ExpertPopularity::ExpertPopularity(const ExpertPopularityOptions& options, int layers, int experts, int top_k, std::uint64_t seed)
    : options_(options), experts_(experts), top_k_(top_k) {
  inclusion_.resize(static_cast<std::size_t>(layers) * static_cast<std::size_t>(options.topics));
  RACKCAST_CHECK(layers >= 1 && experts >= top_k && top_k >= 1 && options.topics >= 1, "layers, experts and topics");
  for (int l = 0; l < layers; ++l) {
    std::seed_seq seeds{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), static_cast<std::uint32_t>(l)};
    std::mt19937_64 random(seeds);
    std::vector<double> weight = base_weights(options_, l, experts, random);
    for (double& w : weight) w = std::log(w);
    base_.push_back(std::move(weight));
    auto& topics = topic_.emplace_back(static_cast<std::size_t>(options_.topics));
    for (auto& topic : topics) {
      topic.resize(static_cast<std::size_t>(experts));
      for (float& g : topic) g = static_cast<float>(options_.topics > 1 ? normal(random) : 0.0);
    }
    auto& walk = walk_.emplace_back(static_cast<std::size_t>(experts));
    for (double& x : walk) x = normal(random);  // starts in its stationary state
    walk_random_.push_back(random);
  }
}

void ExpertPopularity::advance(double time_s) {
  if (options_.drift <= 0) return;
  const double keep = std::exp(-walk_step_s / options_.drift_time_s), fresh = std::sqrt(1 - keep * keep);
  if (walked_to_s_ + walk_step_s > time_s) return;
  for (auto& known : inclusion_) known.clear();
  while (walked_to_s_ + walk_step_s <= time_s) {
    walked_to_s_ += walk_step_s;
    for (std::size_t l = 0; l < walk_.size(); ++l)
      for (double& x : walk_[l]) x = keep * x + fresh * normal(walk_random_[l]);
  }
}

std::vector<double> ExpertPopularity::topic_weights(int layer, int topic) const {
  const auto l = static_cast<std::size_t>(layer);
  const auto& g = topic_[l][static_cast<std::size_t>(topic)];
  std::vector<double> p(static_cast<std::size_t>(experts_));
  double sum = 0;
  for (std::size_t e = 0; e < p.size(); ++e) {
    p[e] = std::exp(base_[l][e] + options_.topic_spread * static_cast<double>(g[e]) + options_.drift * walk_[l][e]);
    sum += p[e];
  }
  for (double& value : p) value /= sum;
  return p;
}

std::vector<double> ExpertPopularity::mean(int layer) const {
  std::vector<double> total(static_cast<std::size_t>(experts_), 0.0);
  for (int t = 0; t < options_.topics; ++t) {
    const std::vector<double> p = topic_weights(layer, t);
    for (std::size_t e = 0; e < total.size(); ++e) total[e] += p[e] / options_.topics;
  }
  return total;
}

// lambda with sum(1 - exp(-lambda p)) = top_k: the sum is concave and rising in lambda, so Newton from below converges.
static double solve_lambda(std::span<const double> p, int top_k) {
  double lambda = top_k;
  for (int i = 0; i < 60; ++i) {
    double value = -top_k, slope = 0;
    for (const double x : p) {
      const double rest = std::exp(-lambda * x);
      value += 1 - rest;
      slope += x * rest;
    }
    if (std::abs(value) < 1e-10 * top_k || slope <= 0) break;
    lambda -= value / slope;
  }
  return lambda;
}

const std::vector<double>& ExpertPopularity::topic_inclusion(int layer, int topic) const {
  std::vector<double>& known = inclusion_[static_cast<std::size_t>(layer) * static_cast<std::size_t>(options_.topics) + static_cast<std::size_t>(topic)];
  if (!known.empty()) return known;
  known = topic_weights(layer, topic);
  const double lambda = solve_lambda(known, top_k_);
  for (double& p : known) p = -std::expm1(-lambda * p);
  return known;
}

std::vector<double> ExpertPopularity::inclusion(int layer, std::span<const double> topic_share) const {
  std::vector<double> total(static_cast<std::size_t>(experts_), 0.0);
  if (experts_ == top_k_) return std::vector<double>(static_cast<std::size_t>(experts_), 1.0);
  for (int t = 0; t < options_.topics; ++t) {
    const double share = topic_share[static_cast<std::size_t>(t)];
    if (share <= 0) continue;
    const std::vector<double>& chosen = topic_inclusion(layer, t);
    for (std::size_t e = 0; e < total.size(); ++e) total[e] += share * chosen[e];
  }
  return total;
}

std::vector<double> ExpertPopularity::draw_topics(int requests, std::mt19937_64& random) const {
  std::vector<double> share(static_cast<std::size_t>(options_.topics), 0.0);
  if (requests <= 0 || options_.topics == 1) return std::vector<double>(share.size(), 1.0 / options_.topics);
  for (int r = 0; r < requests; ++r) share[random() % share.size()] += 1.0 / requests;
  return share;
}

std::vector<double> ExpertPopularity::draw_counts(int layer, double tokens, std::span<const double> topic_share,
                                                  std::mt19937_64& random) const {
  std::vector<double> counts = inclusion(layer, topic_share);
  for (double& c : counts) c = binomial(tokens, std::min(c, 1.0), random);
  return counts;
}

}  // namespace rackcast
