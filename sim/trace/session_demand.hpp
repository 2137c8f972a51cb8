// What lanes ask for in the long run: every session played once from its first turn to its end on a server without latency.
// Unlike a window over lanes that start one to a session (lane_demand), long sessions count with all of their time.
#pragma once
#include <span>

#include "sim/trace/session_plan.hpp"

namespace rackcast {

struct SessionDemand {
  double tokens_per_s = 0;   // of a lane that plays all sessions one after another
  double requests_per_hour = 0;
  double lane_s = 0;         // how long it would take
};
// tree_idle_cap_s: longest pause of a tree with nothing in flight; 0: no cap.
SessionDemand session_demand(const Trace& trace, std::span<const SessionPlan> plans, double tree_idle_cap_s);

}  // namespace rackcast
