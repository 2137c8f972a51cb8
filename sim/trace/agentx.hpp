// The AgentX benchmark's load (InferenceX v1.0 rules): a fixed number of lanes, each playing one recorded session tree
// at a time. Lanes first start somewhere inside their sessions, warm the cache (primers, then some requests with one
// output token), and are then measured; think time is replayed from the end of one call to the start of the next.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/trace/load.hpp"
#include "sim/trace/session_plan.hpp"

namespace rackcast {

// The plans of a trace's sessions that can be replayed. They borrow the trace. UserError when there are none.
using SessionPlans = std::vector<SessionPlan>;
std::shared_ptr<const SessionPlans> session_plans(const Trace& trace);

struct AgentxOptions {
  const Trace* trace = nullptr;       // borrowed for the load's life
  std::shared_ptr<const SessionPlans> plans = {};  // of that trace, when several loads share them; null: each makes its own
  std::uint32_t lanes = 1;
  double start_min = 0.25, start_max = 0.75;  // start of a lane's first play, share of the session's span; 0 and 0: turn 0
  std::uint32_t warmup_requests = 10; // per lane, after the primers
  double tree_idle_cap_s = 300;       // a tree with nothing in flight sends again after at most this; 0: no guard
  double system_idle_cap_s = 10;      // the same for all lanes together
  bool think_time = true;             // false: every gap is 0
  std::uint32_t output_limit = 0;     // 0: as recorded
  std::uint64_t seed = 42;
};

std::unique_ptr<Load> make_agentx(const AgentxOptions& options);

// Tokens (cached input, computed input and output) that the lanes would ask of a server without latency.
struct LaneDemand {
  double tokens_per_s = 0;           // of all lanes
  double output_tokens_per_s = 0;
  double requests_per_lane_hour = 0;
  double input_mean = 0;
};
LaneDemand lane_demand(const AgentxOptions& options, double duration_s);

}  // namespace rackcast
