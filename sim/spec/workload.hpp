// What is asked of the deployment: an AgentX replay, open-loop arrivals, or a closed loop of fixed lengths.
#pragma once
#include <string>
#include <vector>

#include "sim/base/schema.hpp"
#include "sim/policy/expert_options.hpp"

namespace rackcast {

enum class WorkloadKind { agentx, open_loop, closed_loop, mix };
enum class ArrivalKind { recorded, poisson };
enum class WarmupMode { replay, preload };
extern const std::vector<Choice> workload_kinds, arrival_kinds, warmup_modes;

// One load of a mix. What it does not say holds for all parts (think_time, warm-up, turns of the clock).
struct MixPart {
  double share = 1;                      // of the lanes, relative to the other parts
  WorkloadKind kind = WorkloadKind::agentx;  // agentx or closed_loop
  std::string trace = "generated-v1.0";
  Tokens input{8192}, output{1024};
  double range_ratio = 1.0;
  int turns = 1;
  double shared_prefix = 0.0;
  int prefix_groups = 1;
};
void fields(Visitor& v, MixPart& p);

struct WorkloadSpec {
  WorkloadKind kind = WorkloadKind::agentx;
  std::string trace = "generated-v1.0";  // generated-v1.0, kv-cache-tester (found under RACKCAST_DATA), or a path
  int concurrency = 1;                   // lanes (agentx) or users (closed_loop)
  Seconds duration{1800};                // measured window
  Seconds grace{30};                     // after it, requests in flight may finish and count
  // agentx
  double start_min = 0.25, start_max = 0.75;  // start point of a lane's first play, share of its session's span
  int warmup_requests = 10;              // per lane, one output token each, after the primers
  WarmupMode warmup = WarmupMode::replay;
  Seconds tree_idle_cap{300};            // 0: no guard
  Seconds system_idle_cap{10};           // 0: no guard
  bool think_time = true;                // false: every gap is 0
  int output_limit = 0;                  // 0: as recorded; 1 for prefill-only
  // open_loop and closed_loop
  ArrivalKind arrivals = ArrivalKind::recorded;
  PerSecond rate{};                      // poisson: requests per second ("20 /s")
  std::int64_t requests = 0;             // stop after this many; 0: the duration rules
  std::int64_t warmup_count = 0;         // closed_loop, open_loop: first requests not counted
  Tokens input{8192}, output{1024};      // fixed lengths
  double range_ratio = 1.0;              // lengths uniform in [ratio * nominal, nominal] (InferenceX: 0.8)
  int turns = 1;                         // requests of one user's session that share a growing prefix
  double shared_prefix = 0.0;            // share of the input that is one of `prefix_groups` common prefixes
  int prefix_groups = 1;
  std::vector<MixPart> mix;              // kind mix: several loads at once, their lanes add up to concurrency
  ExpertLoadSpec experts;                // which experts the tokens choose
};
void fields(Visitor& v, WorkloadSpec& w);

// The workload of each part of a mix, with its lanes; of another kind: itself alone.
std::vector<WorkloadSpec> parts_of(const WorkloadSpec& workload);

}  // namespace rackcast
