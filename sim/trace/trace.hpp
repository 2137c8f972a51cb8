// A recorded or generated load in memory: sessions of requests. Block hashes stay runs: one request is about three
// runs, and no code path walks single blocks.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "sim/base/hash_run.hpp"

namespace rackcast {

struct TraceRequest {
  double start_s = 0;                                              // since the session's start (absolute for inner requests too)
  double api_time_s = std::numeric_limits<double>::quiet_NaN();    // recorded server time; NaN when the record has none
  float think_time_s = std::numeric_limits<float>::quiet_NaN();    // recorded client time before the call; replay recomputes it
  std::uint32_t input_tokens = 0;
  std::uint32_t output_tokens = 0;
  std::uint32_t runs_begin = 0;  // into Trace::runs
  std::uint32_t runs_count = 0;
  std::int32_t group = -1;       // subagent group of the session, -1 = main agent
  std::uint16_t model = 0;       // into Trace::models
};

struct SubagentGroup {
  double start_s = 0;
  double duration_s = 0;
};

struct Session {
  std::string id;
  std::uint32_t block_tokens = 64;
  std::uint32_t requests_begin = 0, requests_count = 0;  // into Trace::requests, in file order
  std::uint32_t groups_begin = 0, groups_count = 0;      // into Trace::groups
};

struct Trace {
  std::vector<Session> sessions;
  std::vector<TraceRequest> requests;
  std::vector<SubagentGroup> groups;
  std::vector<HashRun> runs;
  std::vector<std::string> models;
  bool block_ids_global = false;  // Mooncake, Azure: arrivals, ids shared by all; agent sessions: ids local to a session
  std::uint64_t content_hash = 0; // of the bytes read, for the manifest
  std::string source;             // where it came from, for the manifest

  std::span<const HashRun> runs_of(const TraceRequest& r) const { return {runs.data() + r.runs_begin, r.runs_count}; }
};

}  // namespace rackcast
