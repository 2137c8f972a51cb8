#include "sim/policy/eplb_policy.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/policy/eplb.hpp"

namespace rackcast {

const std::vector<Choice> eplb_policies = {
    {"none", "experts stay where the checkpoint puts them"},
    {"static", "placed once, from the load known at the start or from a table"},
    {"periodic_sync", "placed anew every interval; decoding stops meanwhile"},
    {"periodic_async", "placed anew every interval; weights move while decoding goes on"},
    {"oracle", "placed anew every step at no cost: an upper bound"},
    {"random_replicas", "redundant slots hold random experts: a lower bound"}};
const std::vector<Choice> eplb_areas = {{"global", "over all ranks of the engine"},
                                        {"hierarchical", "groups of experts to nodes first, then within each node"}};

void fields(Visitor& v, EplbSpec& e) {
  v.choice("policy", e.policy, eplb_policies, "how experts and their replicas are placed on ranks");
  v.field("redundant_experts", e.redundant_experts, "expert slots of an engine beyond one per expert")
      .require(e.redundant_experts >= 0 && e.redundant_experts <= 32768, "must be 0 to 32768");
  v.field("draft_redundant_experts", e.draft_redundant_experts, "the same for the draft model, which has a placement of its own")
      .require(e.draft_redundant_experts >= 0 && e.draft_redundant_experts <= 32768, "must be 0 to 32768");
  v.field("window", e.window, "engine steps of load that a placement rests on").require(e.window > 0, "must be > 0");
  v.field("interval", e.interval, "engine steps between rearrangements; the first comes after a quarter of it").require(e.interval > 0, "must be > 0");
  v.choice("replica_choice", e.replica_choice, replica_choices, "which replica of an expert a token goes to");
  v.choice("placement", e.area, eplb_areas, "over what the load is balanced");
  v.field("groups", e.groups, "hierarchical: groups of experts that stay in one node").require(e.groups > 0, "must be > 0");
  v.group("static", e.static_placement, "policy static");
  v.group("periodic_sync", e.periodic_sync, "policy periodic_sync");
  v.group("periodic_async", e.periodic_async, "policy periodic_async");
  v.group("random_replicas", e.random_replicas, "policy random_replicas");
}

ExpertPlacement EplbPlanner::linear() const { return place_linear(shape_.experts, shape_.ranks, shape_.slots); }

ExpertPlacement EplbPlanner::balanced(std::span<const double> load) const {
  ExpertPlacement placed = groups_ > 0 && shape_.nodes > 1 && !shape_.draft
                               ? place_hierarchical(load, groups_, shape_.nodes, shape_.ranks, shape_.slots)
                               : place_global(load, shape_.ranks, shape_.slots);
  return better_of(placed, linear(), load);
}

static void check_table(const std::vector<ExpertPlacement>& table, const EplbShape& shape) {
  for (const ExpertPlacement& layer : table)
    if (layer.ranks != shape.ranks || layer.experts != shape.experts || layer.slots_per_rank != shape.slots)
      throw UserError(fmt::format("the placement table is for {} experts on {} ranks with {} slots each, but the engine has {} "
                                  "experts on {} ranks with {} slots each: make it anew with `rackcast eplb --ep {}`",
                                  layer.experts, layer.ranks, layer.slots_per_rank, shape.experts, shape.ranks, shape.slots, shape.ranks));
}

std::unique_ptr<EplbPlanner> make_eplb_planner(const EplbSpec& spec, const EplbShape& shape, std::vector<ExpertPlacement> table) {
  if (shape.slots > shape.experts)
    throw UserError(fmt::format("{} expert slots on each of {} ranks for {} experts: with fewer redundant experts no rank holds one twice",
                                shape.slots, shape.ranks, shape.experts));
  check_table(table, shape);
  std::unique_ptr<EplbPlanner> planner;
  switch (spec.policy) {
    case EplbPolicy::none: planner = make_eplb_none(shape); break;
    case EplbPolicy::static_placement: planner = make_eplb_static(shape, spec.static_placement, std::move(table)); break;
    case EplbPolicy::periodic_sync: planner = make_eplb_periodic_sync(shape, spec.periodic_sync, spec.interval); break;
    case EplbPolicy::periodic_async: planner = make_eplb_periodic_async(shape, spec.periodic_async, spec.interval); break;
    case EplbPolicy::oracle: planner = make_eplb_oracle(shape); break;
    case EplbPolicy::random_replicas: planner = make_eplb_random_replicas(shape, spec.random_replicas); break;
  }
  RACKCAST_CHECK(planner != nullptr, "an EPLB policy without a row in make_eplb_planner");
  planner->use_groups(spec.area == EplbArea::hierarchical ? spec.groups : 0);
  return planner;
}

}  // namespace rackcast
