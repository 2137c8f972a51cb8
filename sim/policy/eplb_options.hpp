// What a scenario says about expert placement. Each policy's options have their fields() in the policy's own file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/policy/choices.hpp"
#include "sim/policy/expert_options.hpp"

namespace rackcast {

extern const std::vector<Choice> eplb_policies, eplb_areas, eplb_paths;

enum class EplbArea { global, hierarchical };
enum class EplbPath { host, nvlink };

// A table measured once is never quite the load of the day.
struct EplbStaticOptions {
  double profile_error = 0;
  std::string table;
};
void fields(Visitor& v, EplbStaticOptions& o);

// Host costs that no published figure splits are assumed; the range that they stand in is in their file.
struct EplbSyncOptions {
  Seconds plan_per_slot{5e-6};
  Seconds per_layer{8e-3};
  Seconds per_slot{80e-6};
  EplbPath path = EplbPath::host;
};
void fields(Visitor& v, EplbSyncOptions& o);

struct EplbAsyncOptions {
  Seconds plan_per_slot{5e-6};
  Seconds per_layer{8e-3};
  double link_share = 0.1;
};
void fields(Visitor& v, EplbAsyncOptions& o);

struct EplbRandomOptions {
  std::uint64_t seed = 1;
};
void fields(Visitor& v, EplbRandomOptions& o);

struct EplbSpec {
  EplbPolicy policy = EplbPolicy::none;
  int redundant_experts = 0;          // slots beyond one per expert, over all ranks of an engine
  int draft_redundant_experts = 0;    // the same for the draft model, which has a placement of its own
  int window = 1000;                  // engine steps of load that a placement is computed from
  int interval = 3000;                // engine steps between rearrangements
  ReplicaChoice replica_choice = ReplicaChoice::round_robin;
  EplbArea area = EplbArea::global;
  int groups = 8;                     // of experts; hierarchical only
  EplbStaticOptions static_placement;
  EplbSyncOptions periodic_sync;
  EplbAsyncOptions periodic_async;
  EplbRandomOptions random_replicas;
};
void fields(Visitor& v, EplbSpec& e);

}  // namespace rackcast
