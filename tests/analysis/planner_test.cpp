#define BOOST_TEST_MODULE planner
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <random>

#include "analysis/planner.hpp"

using namespace rackcast;

namespace {

// Closed loops with made-up engines: a lane asks for `demand`, an engine serves at most `capacity`, and is slower for
// each user the fuller it is.
struct World {
  double demand = 1;
  std::vector<double> capacity, speed;
  double limit = 150;
  PlanMeasure at(std::size_t d, double lanes) const {
    const double asked = lanes * demand;
    const double served = asked / std::pow(1 + std::pow(asked / capacity[d], 4), 0.25);
    const double user = speed[d] / (1 + asked / capacity[d]);
    return {true, user >= limit, served, demand};
  }
};

World random_world(std::uint64_t seed, std::size_t deployments) {
  std::mt19937_64 random(seed);
  const auto uniform = [&](double low, double high) { return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53; };
  World world;
  world.demand = uniform(0.5, 3);
  for (std::size_t d = 0; d < deployments; ++d) {
    world.capacity.push_back(uniform(500, 8000));
    world.speed.push_back(uniform(120, 500));
  }
  return world;
}

std::vector<double> lanes_to(std::size_t count) {
  std::vector<double> lanes;
  for (double at = 64; lanes.size() < count; at *= std::sqrt(2.0)) lanes.push_back(std::round(at));
  return lanes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_plan_is_the_optimum_of_the_whole_space_with_a_third_of_its_time) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const World world = random_world(seed, 25);
    const PlannerOptions options{.deployments = 25, .lanes = lanes_to(12), .leaders = 3, .most_runs = 0};
    double best = -1, time = 0;
    for (std::size_t d = 0; d < 25; ++d)
      for (const double lanes : options.lanes)
        if (const PlanMeasure seen = world.at(d, lanes); seen.feasible) best = std::max(best, seen.score);
    const Plan plan = make_plan(options, [&](const std::vector<PlanPoint>& points) {
      std::vector<PlanMeasure> seen;
      for (const PlanPoint& p : points) {
        seen.push_back(world.at(p.deployment, options.lanes[p.level]));
        time += p.thorough ? 10 : 2;
      }
      return seen;
    });
    BOOST_REQUIRE(plan.found == (best >= 0));
    if (!plan.found) continue;
    BOOST_TEST(plan.measured.at(plan.best).score == best, "seed " << seed);
    BOOST_TEST(time <= 25 * 12 * 10 / 3.0, "seed " << seed);
    BOOST_TEST(plan.best.deployment != plan.runner_up.deployment);
  }
}

BOOST_AUTO_TEST_CASE(pruning_happens_and_never_removes_the_optimum) {
  std::size_t pruned = 0, unseen = 0, runs_with = 0, runs_without = 0;
  for (std::uint64_t seed = 300; seed < 400; ++seed) {
    const World world = random_world(seed, 12);
    PlannerOptions options{.deployments = 12, .lanes = lanes_to(16), .leaders = 12, .most_runs = 0};
    const auto run = [&](bool bounds) {
      options.fall_allowed = bounds ? 0.1 : 1;
      options.most = nullptr;
      if (bounds) options.most = [&](std::size_t d) { return world.capacity[d]; };
      return make_plan(options, [&](const std::vector<PlanPoint>& points) {
        std::vector<PlanMeasure> seen;
        for (const PlanPoint& p : points) {
          seen.push_back(world.at(p.deployment, options.lanes[p.level]));
          if (!bounds) seen.back().most_per_lane = 0;
        }
        return seen;
      });
    };
    const Plan with = run(true), without = run(false);
    BOOST_REQUIRE(with.found == without.found);
    if (with.found) BOOST_TEST(with.measured.at(with.best).score == without.measured.at(without.best).score, "seed " << seed);
    pruned += with.pruned;
    unseen += with.unseen;
    runs_with += with.runs;
    runs_without += without.runs;
    BOOST_TEST(without.pruned == 0u);
  }
  BOOST_TEST(pruned > 500u);
  BOOST_TEST(unseen > 100u);  // never simulated at all
  BOOST_TEST(runs_with < runs_without / 2);
}

BOOST_AUTO_TEST_CASE(a_score_that_falls_under_overload_as_far_as_allowed_hides_no_optimum) {
  for (std::uint64_t seed = 500; seed < 600; ++seed) {
    World world = random_world(seed, 12);
    const std::vector<double> lanes = lanes_to(16);
    const auto measure = [&](std::size_t d, std::size_t level) {
      PlanMeasure seen = world.at(d, lanes[level]);
      const double over = lanes[level] * world.demand / world.capacity[d];
      if (over > 1) seen.score *= 1 - 0.09 * std::min(1.0, over - 1);
      return seen;
    };
    double best = -1;
    for (std::size_t d = 0; d < 12; ++d)
      for (std::size_t level = 0; level < lanes.size(); ++level)
        if (const PlanMeasure seen = measure(d, level); seen.feasible) best = std::max(best, seen.score);
    const Plan plan = make_plan({.deployments = 12, .lanes = lanes}, [&](const std::vector<PlanPoint>& points) {
      std::vector<PlanMeasure> seen;
      for (const PlanPoint& p : points) seen.push_back(measure(p.deployment, p.level));
      return seen;
    });
    BOOST_REQUIRE(plan.found == (best >= 0));
    // The planner ends at the most lanes within the limits; a fall just before them may cost what is allowed.
    if (plan.found) BOOST_TEST(plan.measured.at(plan.best).score >= 0.9 * best, "seed " << seed);
  }
}

BOOST_AUTO_TEST_CASE(nothing_feasible_is_no_plan_and_invalid_deployments_are_dropped) {
  const PlannerOptions options{.deployments = 3, .lanes = {1, 2, 4}, .leaders = 2, .most_runs = 0};
  const Plan none = make_plan(options, [](const std::vector<PlanPoint>& points) { return std::vector<PlanMeasure>(points.size(), {true, false, 1, 0}); });
  BOOST_TEST(!none.found);
  const Plan one = make_plan(options, [](const std::vector<PlanPoint>& points) {
    std::vector<PlanMeasure> seen;
    for (const PlanPoint& p : points) seen.push_back({p.deployment == 1, true, static_cast<double>(p.level), 0});
    return seen;
  });
  BOOST_TEST(one.found);
  BOOST_TEST(one.best.deployment == 1u);
  BOOST_TEST(one.best.level == 2u);
  BOOST_TEST(one.invalid == 2u);
}

BOOST_AUTO_TEST_CASE(a_budget_of_runs_is_kept) {
  const World world = random_world(5, 20);
  const PlannerOptions options{.deployments = 20, .lanes = lanes_to(12), .leaders = 3, .most_runs = 10};
  std::size_t runs = 0;
  const Plan plan = make_plan(options, [&](const std::vector<PlanPoint>& points) {
    runs += points.size();
    std::vector<PlanMeasure> seen;
    for (const PlanPoint& p : points) seen.push_back(world.at(p.deployment, options.lanes[p.level]));
    return seen;
  });
  BOOST_TEST(runs <= 10u);
  BOOST_TEST(plan.runs == runs);
  BOOST_TEST(plan.out_of_runs);
}
