#define BOOST_TEST_MODULE expert_demand
#include "sim/policy/expert_demand.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>

#include "sim/policy/eplb.hpp"

using namespace rackcast;

BOOST_AUTO_TEST_CASE(even_counts_give_ratios_of_one) {
  const std::vector<double> counts(256, 256.0 * 8 / 256 * 8);  // 2,048 tokens x top-8 over 256 experts: 64 each
  const ExpertDemand demand = demand_of_counts(place_linear(256, 32, 8), counts, 2048, 8, ReplicaChoice::round_robin);
  BOOST_TEST(demand.rows == 1.0, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(demand.touched == 1.0, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(demand.ingress == 1.0, boost::test_tools::tolerance(0.02));  // experts of a token taken as independent
}

BOOST_AUTO_TEST_CASE(all_tokens_on_one_expert_load_one_rank_with_everything) {
  std::vector<double> counts(8, 0.0);
  counts[3] = 100;
  const ExpertDemand demand = demand_of_counts(place_linear(8, 4, 2), counts, 100, 1, ReplicaChoice::round_robin);
  BOOST_TEST(demand.rows == 4.0, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(demand.touched == 0.5, boost::test_tools::tolerance(1e-5));  // one of two slots, where balanced touches both
  BOOST_TEST(demand.ingress == 4.0, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(redundant_slots_are_touched_too_when_the_batch_is_large_enough) {
  const std::vector<double> many(256, 100.0), few(256, 0.5);
  const auto with = place_global(std::vector<double>(256, 1.0), 32, 9);
  BOOST_TEST(demand_of_counts(with, many, 3200, 8, ReplicaChoice::round_robin).touched > 1.1);
  BOOST_TEST(demand_of_counts(with, few, 16, 8, ReplicaChoice::round_robin).touched < 1.4);
}

// Three tokens, top-1 of four equal experts on two ranks: all 64 outcomes by hand.
BOOST_AUTO_TEST_CASE(the_library_agrees_with_exact_enumeration_on_a_small_case) {
  const auto placement = place_linear(4, 2, 2);
  double exact = 0;
  for (int outcome = 0; outcome < 64; ++outcome) {
    std::vector<double> counts(4, 0.0);
    for (int t = 0, rest = outcome; t < 3; ++t, rest /= 4) counts[static_cast<std::size_t>(rest % 4)] += 1;
    exact += demand_of_counts(placement, counts, 3, 1, ReplicaChoice::round_robin).rows / 64;
  }
  BOOST_TEST(exact == (0.25 * 2.0 + 0.75 * 4.0 / 3.0), boost::test_tools::tolerance(1e-12));
  // Independent binomials stand for the multinomial: the total varies too, by a third here and by 1/sqrt(rows) at scale.
  const ExpertPopularity popularity({.topics = 1, .topic_spread = 0, .drift = 0}, 1, 4, 1, 1);
  const std::vector<ExpertPlacement> layers{placement};
  double drawn = 0;
  const int libraries = 400;
  for (int seed = 0; seed < libraries; ++seed) {
    ExpertDemandLibrary library(ReplicaChoice::round_robin, static_cast<std::uint64_t>(seed));
    library.reset(popularity, layers);
    for (int i = 0; i < ExpertDemandLibrary::samples_per_bucket; ++i) {
      library.next_step(std::vector<double>{1.0});
      drawn += library.at(4).mean.rows / (libraries * ExpertDemandLibrary::samples_per_bucket);
    }
  }
  double exact_four = 0;  // four tokens: 256 outcomes
  for (int outcome = 0; outcome < 256; ++outcome) {
    std::vector<double> counts(4, 0.0);
    for (int t = 0, rest = outcome; t < 4; ++t, rest /= 4) counts[static_cast<std::size_t>(rest % 4)] += 1;
    exact_four += demand_of_counts(placement, counts, 4, 1, ReplicaChoice::round_robin).rows / 256;
  }
  BOOST_TEST(drawn == exact_four, boost::test_tools::tolerance(0.03));
}

BOOST_AUTO_TEST_CASE(the_library_agrees_with_fresh_draws_of_every_layer) {
  const int layers = 40, experts = 384, ranks = 32, top_k = 6;
  const ExpertPopularity popularity({.skew = ExpertSkew::zipf, .exponent = 0.8}, layers, experts, top_k, 2);
  std::vector<ExpertPlacement> placements;
  for (int l = 0; l < layers; ++l) placements.push_back(place_global(popularity.mean(l), ranks, 13));
  ExpertDemandLibrary library(ReplicaChoice::round_robin, 3);
  library.reset(popularity, placements);
  std::mt19937_64 random(4);
  for (const double tokens : {64.0 * 32, 100.0 * 32, 384.0 * 32, 6000.0 * 32}) {
    ExpertDemand fresh{0, 0, 0}, pre{0, 0, 0};
    const int steps = 10;
    for (int s = 0; s < steps; ++s) {
      const auto topics = popularity.draw_topics(static_cast<int>(tokens / 6), random);
      for (int l = 0; l < layers; ++l) {
        const auto one = demand_of_counts(placements[static_cast<std::size_t>(l)], popularity.draw_counts(l, tokens, topics, random), tokens, top_k, ReplicaChoice::round_robin);
        fresh.rows += one.rows / (steps * layers);
        fresh.touched += one.touched / (steps * layers);
        fresh.ingress += one.ingress / (steps * layers);
      }
    }
    const int drawn = 64;
    for (int i = 0; i < drawn; ++i) {
      library.next_step(popularity.draw_topics(static_cast<int>(tokens / 6), random));
      const auto one = library.at(tokens).mean;
      pre.rows += one.rows / drawn;
      pre.touched += one.touched / drawn;
      pre.ingress += one.ingress / drawn;
    }
    BOOST_TEST_INFO("tokens " << tokens);
    BOOST_TEST(pre.rows == fresh.rows, boost::test_tools::tolerance(0.02));
    BOOST_TEST_INFO("tokens " << tokens);
    BOOST_TEST(pre.touched == fresh.touched, boost::test_tools::tolerance(0.02));
    BOOST_TEST_INFO("tokens " << tokens);
    BOOST_TEST(pre.ingress == fresh.ingress, boost::test_tools::tolerance(0.02));
  }
}

BOOST_AUTO_TEST_CASE(the_library_draws_the_same_for_the_same_seed) {
  const ExpertPopularity popularity({.skew = ExpertSkew::zipf}, 4, 64, 4, 2);
  const std::vector<ExpertPlacement> placements(4, place_linear(64, 8, 8));
  ExpertDemandLibrary a(ReplicaChoice::round_robin, 3), b(ReplicaChoice::round_robin, 3);
  a.reset(popularity, placements);
  b.reset(popularity, placements);
  const std::vector<double> topics(4, 0.25);
  a.next_step(topics);
  b.next_step(topics);
  for (const double tokens : {100.0, 900.0, 100.0}) BOOST_TEST(a.at(tokens).mean.rows == b.at(tokens).mean.rows);
}

BOOST_AUTO_TEST_CASE(a_step_stays_as_drawn_until_it_ends_and_is_drawn_anew_with_the_topics_of_later_requests) {
  const ExpertPopularity popularity({.skew = ExpertSkew::zipf, .topics = 2, .topic_spread = 2, .drift = 0}, 1, 64, 4, 2);
  const std::vector<ExpertPlacement> placements(1, place_linear(64, 8, 8));
  ExpertDemandLibrary library(ReplicaChoice::round_robin, 3);
  library.reset(popularity, placements);
  const auto fresh = [&](std::span<const double> topics) {
    std::mt19937_64 random(1);
    double rows = 0;
    for (int i = 0; i < 500; ++i)
      rows += demand_of_counts(placements[0], popularity.draw_counts(0, 4096, topics, random), 4096, 4, ReplicaChoice::round_robin).rows / 500;
    return rows;
  };
  const std::vector<double> first{1, 0}, second{0, 1};
  const int renewal = ExpertDemandLibrary::samples_per_bucket * ExpertDemandLibrary::uses_per_sample;
  const auto mean_rows = [&](const std::vector<double>& topics, int steps) {
    double rows = 0;
    for (int i = 0; i < steps; ++i) {
      library.next_step(topics);
      rows += library.at(4096).mean.rows / steps;
      BOOST_REQUIRE_EQUAL(library.at(4096).mean.rows, library.at(4096).mean.rows);
    }
    return rows;
  };
  const double before = mean_rows(first, 64);
  mean_rows(second, renewal);
  BOOST_TEST(before == fresh(first), boost::test_tools::tolerance(0.02));
  BOOST_TEST(mean_rows(second, 64) == fresh(second), boost::test_tools::tolerance(0.02));
  BOOST_TEST(std::abs(fresh(first) / fresh(second) - 1) > 0.05);  // else the test shows nothing
}

BOOST_AUTO_TEST_CASE(no_row_is_lost_or_doubled_whatever_the_placement_and_the_choice_of_replicas) {
  const ExpertPopularity popularity({.skew = ExpertSkew::power_law, .exponent = 1.2}, 1, 64, 4, 5);
  std::mt19937_64 random(1);
  for (const ReplicaChoice choice : {ReplicaChoice::round_robin, ReplicaChoice::load_aware})
    for (const auto& placement : {place_linear(64, 8, 9), place_global(popularity.mean(0), 8, 12), place_random_replicas(64, 8, 10, 3)}) {
      const double tokens = 777;
      const auto counts = popularity.draw_counts(0, tokens, popularity.draw_topics(100, random), random);
      double routed = 0, rows = 0;
      for (const double c : counts) routed += c;
      for (const ExpertDemand& rank : rank_demands(placement, counts, tokens, 4, choice)) rows += rank.rows * tokens * 4 / 8;
      BOOST_TEST(rows == routed, boost::test_tools::tolerance(1e-9));
    }
}

BOOST_AUTO_TEST_CASE(of_a_layer_only_ranks_that_can_be_slowest_are_kept) {
  StepDemand step;
  const std::vector<ExpertDemand> ranks{{1, 1, 1}, {2, 0.5, 1}, {0.5, 0.5, 1}, {1, 1, 1}, {2, 0.4, 1}};
  step.add_layer(ranks);
  BOOST_REQUIRE_EQUAL(step.layer(0).size(), 2U);
  BOOST_TEST(step.layer(0)[0].touched == 1);
  BOOST_TEST(step.layer(0)[1].rows == 2);
  BOOST_TEST(step.mean.rows == 2);
  BOOST_TEST(step.mean.touched == 1);
}
