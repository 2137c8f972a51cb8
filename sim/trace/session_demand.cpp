#include "sim/trace/session_demand.hpp"

#include <limits>

#include "sim/base/error.hpp"
#include "sim/trace/play.hpp"

namespace rackcast {

SessionDemand session_demand(const Trace& trace, std::span<const SessionPlan> plans, double tree_idle_cap_s) {
  double tokens = 0, requests = 0, lane_s = 0;
  for (const SessionPlan& plan : plans) {
    Play play;
    play.start(plan, 0);
    double now_s = 0;
    while (!play.done(plan)) {
      const double idle_s = play.next_s() - now_s;
      if (tree_idle_cap_s > 0 && idle_s > tree_idle_cap_s) play.shift(idle_s - tree_idle_cap_s);
      now_s = play.next_s();
      RACKCAST_CHECK(now_s < std::numeric_limits<double>::infinity(), "a session that is not done has a next request");
      const std::uint32_t node = play.issue(plan, now_s, 1);
      const TraceRequest& request = trace.requests[plan.nodes()[node].request];
      tokens += static_cast<double>(request.input_tokens) + request.output_tokens;
      requests += 1;
      play.finish(plan, node, now_s, 1);
    }
    lane_s += now_s;
  }
  return lane_s > 0 ? SessionDemand{tokens / lane_s, requests / lane_s * 3600, lane_s} : SessionDemand{};
}

}  // namespace rackcast
