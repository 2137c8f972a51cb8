// What a load looks like: lengths, reuse, gaps, trees. The same numbers describe a recorded and a generated load.
#pragma once
#include <array>
#include <cstdint>

#include "sim/trace/trace.hpp"

namespace rackcast {

// Percentiles by linear interpolation.
struct Distribution {
  double p10 = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0, mean = 0;
  std::uint64_t count = 0;
};

struct TraceStatistics {
  std::uint64_t sessions = 0, requests = 0, main_requests = 0, inner_requests = 0;
  std::uint64_t subagent_groups = 0, sessions_with_groups = 0;
  double input_tokens = 0, output_tokens = 0;
  Distribution input, input_main, input_inner, output, output_main;
  Distribution new_tokens;            // input that an infinite cache of the session does not hold
  Distribution turns_per_session;     // main requests
  Distribution gap_s;                 // end to start, between main requests that follow each other in the record
  Distribution think_s;               // recorded client time, of requests that have it
  double gap_over_300_s = 0, gap_over_1800_s = 0;  // shares of them
  Distribution groups_per_session;    // of sessions that have any
  Distribution requests_per_group, group_minutes;
  Distribution groups_at_once;        // most groups alive together, of sessions that have any
  double hit_ideal = 0;               // infinite cache a session: held blocks / blocks
  double hit_previous = 0;            // only what the previous request of the same stream left
  double output_share = 0;            // output / (input + output)
  // Of the replay's trees:
  std::uint64_t streams = 0, subagent_streams = 0, sibling_streams = 0, flat_streams = 0;
  std::uint64_t barrier_edges = 0, gated_requests = 0;
  std::uint64_t runs = 0;
};

TraceStatistics statistics_of(const Trace& trace);

}  // namespace rackcast
