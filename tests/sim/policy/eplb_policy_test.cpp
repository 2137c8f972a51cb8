#define BOOST_TEST_MODULE eplb_policy
#include "sim/policy/eplb_policy.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numeric>

#include "sim/base/error.hpp"
#include "sim/policy/eplb.hpp"
#include "sim/policy/expert_moves.hpp"

using namespace rackcast;

namespace {

std::vector<double> zipf(int experts) {
  std::vector<double> load;
  for (int e = 0; e < experts; ++e) load.push_back(1 / (e + 1.0));
  return load;
}

const EplbShape shape{64, 8, 10, 1, false};

std::unique_ptr<EplbPlanner> planner(EplbPolicy policy, EplbSpec spec = {}) {
  spec.policy = policy;
  return make_eplb_planner(spec, shape);
}

double gap(const ExpertPlacement& placement) { return imbalance(rank_loads(placement, zipf(64))); }

}  // namespace

BOOST_AUTO_TEST_CASE(balancing_policies_beat_the_checkpoints_order_and_random_replicas_lie_between_or_near) {
  const auto load = zipf(64);
  const double none = gap(planner(EplbPolicy::none)->initial(0, load));
  BOOST_TEST(gap(planner(EplbPolicy::static_placement)->initial(0, load)) < 0.1 * none);
  BOOST_TEST(gap(planner(EplbPolicy::periodic_sync)->next(load)) < 0.1 * none);
  BOOST_TEST(gap(planner(EplbPolicy::oracle)->next(load)) < 0.1 * none);
  BOOST_TEST(gap(planner(EplbPolicy::random_replicas)->initial(0, load)) > gap(planner(EplbPolicy::oracle)->next(load)));
}

BOOST_AUTO_TEST_CASE(periodic_policies_start_as_the_checkpoint_has_it_and_come_due_after_a_quarter_then_every_interval) {
  EplbSpec spec;
  spec.interval = 100;
  for (const EplbPolicy policy : {EplbPolicy::periodic_sync, EplbPolicy::periodic_async}) {
    const auto p = planner(policy, spec);
    BOOST_TEST(p->initial(0, zipf(64)).slot_expert == place_linear(64, 8, 10).slot_expert);
    std::vector<int> due;
    for (int step = 1; step <= 330; ++step)
      if (p->due(static_cast<std::uint64_t>(step))) due.push_back(step);
    BOOST_TEST(due == (std::vector<int>{25, 125, 225, 325}), boost::test_tools::per_element());
  }
  BOOST_TEST((planner(EplbPolicy::periodic_sync)->move() == EplbMove::stall));
  BOOST_TEST((planner(EplbPolicy::periodic_async)->move() == EplbMove::background));
  BOOST_TEST(!planner(EplbPolicy::static_placement)->due(1000));
}

BOOST_AUTO_TEST_CASE(a_profile_that_is_off_balances_less) {
  EplbSpec exact, off;
  off.static_placement.profile_error = 0.7;
  BOOST_TEST(gap(planner(EplbPolicy::static_placement, off)->initial(0, zipf(64))) > gap(planner(EplbPolicy::static_placement, exact)->initial(0, zipf(64))));
}

BOOST_AUTO_TEST_CASE(a_table_for_another_engine_is_refused) {
  EplbSpec spec;
  spec.policy = EplbPolicy::static_placement;
  BOOST_CHECK_THROW(make_eplb_planner(spec, shape, {place_linear(64, 16, 5)}), UserError);
  BOOST_CHECK_THROW(make_eplb_planner(spec, shape, {place_linear(64, 8, 9)}), UserError);
  BOOST_CHECK_THROW(make_eplb_planner(spec, shape, {place_linear(32, 8, 10)}), UserError);
  const auto placed = place_global(zipf(64), 8, 10);
  const auto kept = make_eplb_planner(spec, shape, {placed});
  BOOST_TEST(kept->initial(0, zipf(64)).slot_expert == placed.slot_expert);
  BOOST_CHECK_THROW(kept->initial(1, zipf(64)), UserError);
}

BOOST_AUTO_TEST_CASE(more_redundant_experts_than_can_lie_apart_are_refused) {
  BOOST_CHECK_THROW(make_eplb_planner({}, {8, 4, 9, 1, false}), UserError);
}

BOOST_AUTO_TEST_CASE(hierarchical_placement_that_does_not_divide_is_refused_and_the_draft_is_placed_globally) {
  EplbSpec spec;
  spec.area = EplbArea::hierarchical;
  spec.groups = 7;
  spec.policy = EplbPolicy::oracle;
  BOOST_CHECK_THROW(make_eplb_planner(spec, {64, 8, 10, 2, false})->next(zipf(64)), UserError);
  make_eplb_planner(spec, {64, 8, 10, 2, true})->next(zipf(64));
}

BOOST_AUTO_TEST_CASE(moves_carry_every_expert_that_is_new_to_a_rank_from_a_rank_that_had_it) {
  const auto from = place_linear(64, 8, 10), to = place_global(zipf(64), 8, 10);
  const auto moves = expert_moves(from, to);
  std::vector<int> received(8, 0);
  for (const ExpertMove& move : moves) {
    BOOST_TEST(move.from != move.to);
    received[move.to] += static_cast<int>(move.experts);
  }
  BOOST_TEST(received == moved_slots(from, to), boost::test_tools::per_element());
  BOOST_TEST(expert_moves(to, to).empty());
  unsigned doubled = 0, once = 0;
  for (const ExpertMove& move : merge_moves({moves, moves})) doubled += move.experts;
  for (const ExpertMove& move : moves) once += move.experts;
  BOOST_TEST(doubled == 2 * once);
}
