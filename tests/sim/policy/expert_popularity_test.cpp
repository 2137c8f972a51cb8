#define BOOST_TEST_MODULE expert_popularity
#include "sim/policy/expert_popularity.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numeric>

#include "sim/policy/eplb.hpp"

using namespace rackcast;

namespace {
double sum(std::span<const double> v) { return std::accumulate(v.begin(), v.end(), 0.0); }
const std::vector<double> even_topics(4, 0.25);
}  // namespace

BOOST_AUTO_TEST_CASE(popularity_sums_to_one_and_inclusion_to_top_k_for_every_skew) {
  for (const ExpertSkew skew : {ExpertSkew::balanced, ExpertSkew::zipf, ExpertSkew::dirichlet, ExpertSkew::power_law}) {
    ExpertPopularityOptions options{.skew = skew, .exponent = 1.2, .alpha = 0.3};
    const ExpertPopularity popularity(options, 3, 256, 8, 1);
    for (int l = 0; l < 3; ++l) {
      BOOST_TEST(sum(popularity.mean(l)) == 1.0, boost::test_tools::tolerance(1e-9));
      const auto pi = popularity.inclusion(l, even_topics);
      BOOST_TEST(sum(pi) == 8.0, boost::test_tools::tolerance(1e-6));
      for (const double x : pi) BOOST_TEST((x >= 0 && x <= 1));
    }
  }
}

BOOST_AUTO_TEST_CASE(balanced_without_topics_and_drift_gives_every_expert_the_same) {
  const ExpertPopularity popularity({.topics = 1, .topic_spread = 0, .drift = 0}, 1, 384, 6, 1);
  for (const double x : popularity.inclusion(0, std::vector<double>{1.0})) BOOST_TEST(x == 6.0 / 384, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(drawn_counts_have_the_mean_and_variance_of_a_binomial) {
  const ExpertPopularity popularity({.skew = ExpertSkew::zipf, .exponent = 0.8, .topics = 1, .drift = 0}, 1, 64, 4, 2);
  const std::vector<double> one{1.0};
  const auto pi = popularity.inclusion(0, one);
  std::mt19937_64 random(3);
  for (const double tokens : {50.0, 5000.0}) {
    const int draws = 4000;
    std::vector<double> mean(64, 0.0), square(64, 0.0);
    for (int i = 0; i < draws; ++i) {
      const auto counts = popularity.draw_counts(0, tokens, one, random);
      for (std::size_t e = 0; e < 64; ++e) {
        mean[e] += counts[e] / draws;
        square[e] += counts[e] * counts[e] / draws;
      }
    }
    for (const std::size_t e : {std::size_t{0}, std::size_t{20}, std::size_t{63}}) {
      const double expected = tokens * pi[e], variance = expected * (1 - pi[e]);
      BOOST_TEST(std::abs(mean[e] - expected) < 5 * std::sqrt(variance / draws));
      BOOST_TEST(square[e] - mean[e] * mean[e] == variance, boost::test_tools::tolerance(0.15));
    }
  }
}

BOOST_AUTO_TEST_CASE(drift_does_not_depend_on_how_often_it_is_asked) {
  const ExpertPopularityOptions options{.skew = ExpertSkew::zipf, .drift = 0.5};
  ExpertPopularity often(options, 2, 64, 4, 9), once(options, 2, 64, 4, 9), still(options, 2, 64, 4, 9);
  for (int t = 1; t <= 1000; ++t) often.advance(t);
  once.advance(1000);
  BOOST_TEST(often.mean(1) == once.mean(1), boost::test_tools::per_element());
  BOOST_TEST(often.mean(1) != still.mean(1));
}

BOOST_AUTO_TEST_CASE(topics_make_counts_vary_more_than_a_multinomial) {
  const ExpertPopularity mixed({.skew = ExpertSkew::zipf, .topics = 4, .topic_spread = 0.8, .drift = 0}, 1, 64, 4, 5);
  std::mt19937_64 random(1);
  const int draws = 2000;
  double mean = 0, square = 0;
  for (int i = 0; i < draws; ++i) {
    const double c = mixed.draw_counts(0, 600, mixed.draw_topics(6, random), random)[7];
    mean += c / draws;
    square += c * c / draws;
  }
  const double pi = mean / 600;
  BOOST_TEST(square - mean * mean > 1.5 * 600 * pi * (1 - pi));
}

// Published for R1 at EP32 on real batches: 1.56 without balancing, 0.11 with.
BOOST_AUTO_TEST_CASE(decode_steps_placed_from_the_previous_window_stay_within_the_bar) {
  for (const int tokens_per_rank : {96, 384}) {
    const int experts = 256, ranks = 32, top_k = 8, layers = 8;
    ExpertPopularity popularity({.skew = ExpertSkew::zipf, .exponent = 0.8}, layers, experts, top_k, 4);
    std::mt19937_64 random(6);
    double worst_layer_mean = 0, without = 0;
    for (int l = 0; l < layers; ++l) {
      ExpertPopularity now = popularity;
      std::vector<double> window(experts, 0.0);
      for (int step = 0; step < 200; ++step) {
        const auto counts = now.draw_counts(l, tokens_per_rank * ranks, now.draw_topics(64 * ranks, random), random);
        for (std::size_t e = 0; e < counts.size(); ++e) window[e] += counts[e];
      }
      const auto placement = place_global(window, ranks, 9);
      now.advance(60);
      double total = 0, plain = 0;
      const int steps = 50;
      for (int step = 0; step < steps; ++step) {
        const auto counts = now.draw_counts(l, tokens_per_rank * ranks, now.draw_topics(64 * ranks, random), random);
        total += imbalance(rank_loads(placement, counts)) / steps;
        plain += imbalance(rank_loads(place_linear(experts, ranks, 8), counts)) / steps;
      }
      worst_layer_mean = std::max(worst_layer_mean, total);
      without += plain / layers;
    }
    BOOST_TEST_MESSAGE("M " << tokens_per_rank << ": mean imbalance of the worst layer " << worst_layer_mean << ", without balancing " << without);
    BOOST_TEST(worst_layer_mean <= 0.15);
    BOOST_TEST(without > 0.5);
  }
}
