// Policies of expert placement: where experts are when an engine starts, when they are placed anew, and what moving them
// costs. One policy = one file eplb_<name>.cpp with its options' fields() and its class, one row of make_eplb_planner and
// one name in eplb_policies. The algorithms that they share are in eplb.hpp.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/policy/eplb_options.hpp"
#include "sim/policy/expert_placement.hpp"

namespace rackcast {

// What is placed: one model part (main or draft) on one engine.
struct EplbShape {
  int experts = 0, ranks = 1, slots = 0;
  int nodes = 1;      // that the ranks spread over evenly
  bool draft = false;
};

enum class EplbMove { free, stall, background };

// What a rearrangement costs beside the bytes on the links.
struct EplbCosts {
  double plan_s = 0;          // of one layer: the algorithm's own time
  double per_layer_s = 0;     // host: ranks agree, buffers change hands
  double per_slot_s = 0;      // host: posting one expert's tensors
  double link_share = 1;      // of NVLink that the traffic may take
  EplbPath path = EplbPath::nvlink;
};

class EplbPlanner {
 public:
  explicit EplbPlanner(const EplbShape& shape) : shape_(shape) {}
  virtual ~EplbPlanner() = default;
  // Before the first step. profile: the load that is known by then, [experts].
  virtual ExpertPlacement initial(int layer, std::span<const double> profile) const = 0;
  // After `step` steps of the engine: is it time to place the experts anew, from the load of the last window?
  virtual bool due(std::uint64_t /*step*/) const { return false; }
  virtual ExpertPlacement next(std::span<const double> load) const { return balanced(load); }
  virtual bool every_step() const { return false; }  // next() applies to every step's own counts
  virtual EplbMove move() const { return EplbMove::free; }
  virtual EplbCosts costs() const { return {}; }
  const EplbShape& shape() const { return shape_; }

 protected:
  ExpertPlacement linear() const;
  ExpertPlacement balanced(std::span<const double> load) const;  // never worse than linear() on this load
  void use_groups(int groups) { groups_ = groups; }
  friend std::unique_ptr<EplbPlanner> make_eplb_planner(const EplbSpec&, const EplbShape&, std::vector<ExpertPlacement>);

 private:
  EplbShape shape_;
  int groups_ = 0;  // 0: global
};

// table: what static_placement.table held, one placement a layer; empty when none was named. UserError when it is for
// another number of experts or ranks.
std::unique_ptr<EplbPlanner> make_eplb_planner(const EplbSpec& spec, const EplbShape& shape, std::vector<ExpertPlacement> table = {});

// One row each of make_eplb_planner's table.
std::unique_ptr<EplbPlanner> make_eplb_none(const EplbShape& shape);
std::unique_ptr<EplbPlanner> make_eplb_static(const EplbShape& shape, const EplbStaticOptions& options, std::vector<ExpertPlacement> table);
std::unique_ptr<EplbPlanner> make_eplb_periodic_sync(const EplbShape& shape, const EplbSyncOptions& options, int interval);
std::unique_ptr<EplbPlanner> make_eplb_periodic_async(const EplbShape& shape, const EplbAsyncOptions& options, int interval);
std::unique_ptr<EplbPlanner> make_eplb_oracle(const EplbShape& shape);
std::unique_ptr<EplbPlanner> make_eplb_random_replicas(const EplbShape& shape, const EplbRandomOptions& options);

}  // namespace rackcast
