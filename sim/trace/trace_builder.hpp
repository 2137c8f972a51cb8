// Collects what a reader finds into a Trace. Keeps runs canonical (maximal, so that a list of ids and its run-length
// form give the same trace) and total memory bounded.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "sim/trace/trace.hpp"

namespace rackcast {

struct TraceLimits {
  std::uint64_t requests = 50'000'000;       // arrivals of a service
  std::uint64_t agent_sessions = 500'000;     // these are planned ahead, which costs memory
  std::uint64_t agent_requests = 2'000'000;   // with subagent groups; twenty times the largest corpus that we know
  std::uint64_t runs = 500'000'000;
  std::uint32_t tokens_per_request = 1U << 30;
  std::uint32_t block_tokens = 1U << 16;
};

class TraceBuilder {
 public:
  explicit TraceBuilder(Trace& trace, const TraceLimits& limits = {}) : trace_(trace), limits_(limits) {}

  static constexpr std::uint64_t max_block_id = 0xFFFF'FFFE;  // the end of a run must fit 32 bits too

  Trace& trace() { return trace_; }
  const TraceLimits& limits() const { return limits_; }
  bool agents_full() const {
    return trace_.sessions.size() > limits_.agent_sessions || trace_.requests.size() + trace_.groups.size() >= limits_.agent_requests;
  }
  bool full() const { return trace_.requests.size() >= limits_.requests || trace_.runs.size() >= limits_.runs; }

  Session& begin_session();                // its requests and groups are the ones added from now on
  std::uint16_t model(std::string_view name);
  void begin_request(TraceRequest& request) const { request.runs_begin = static_cast<std::uint32_t>(trace_.runs.size()); }
  // Appends blocks to the request whose runs are open; false when ids run out of range.
  bool add_run(TraceRequest& request, std::uint64_t first, std::uint64_t count);
  void drop_last_block(TraceRequest& request);  // of the open request
  void add_request(const TraceRequest& request);

 private:
  Trace& trace_;
  TraceLimits limits_;
  std::map<std::string, std::uint16_t, std::less<>> models_;
};

}  // namespace rackcast
