// What AgentX replays of one recorded session: streams (the root agent, declared subagents, undeclared chains), who
// spawns whom, which turn waits for whom. Built once a session and shared by all its plays; holds no play state.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/trace/trace.hpp"

namespace rackcast {

constexpr std::uint32_t no_node = 0xFFFF'FFFF;

struct PlanNode {
  std::uint32_t request = 0;        // into Trace::requests
  std::uint32_t stream = 0;
  double start_s = 0;               // recorded
  double delay_s = 0;               // from the end of the stream's previous request; first of a stream: from the spawn
  std::uint32_t waits_begin = 0;    // into SessionPlan::waits
  std::uint32_t waits_count = 0;
};

enum class StreamRole : std::uint8_t { root, subagent, sibling, flat };  // sibling: undeclared chain inside a subagent group

struct PlanStream {
  std::uint32_t first = 0, count = 0;  // nodes
  std::uint32_t spawn = no_node;       // root node that starts it
  std::uint32_t join = no_node;        // root node that waits for its end; none: background
  bool at_issue = false;               // it starts when the spawn node is issued, not when it ends (they overlapped)
  StreamRole role = StreamRole::root;
};

// A stretch of blocks that every request of the session takes whole or not at all, so that one bit says "seen".
struct SegmentRange {
  std::uint32_t begin = 0, end = 0;
};

class SessionPlan {
 public:
  SessionPlan(const Trace& trace, const Session& session);

  std::span<const PlanNode> nodes() const { return nodes_; }
  std::span<const PlanStream> streams() const { return streams_; }  // stream 0 is the root
  std::span<const std::uint32_t> spawned_by(std::uint32_t node) const;  // streams
  std::span<const std::uint32_t> joined_by(std::uint32_t node) const;   // streams that the node waits for
  // Nodes of other streams that had ended when this one started: it waits for them in the replay too.
  std::span<const std::uint32_t> waits(const PlanNode& node) const { return {waits_.data() + node.waits_begin, node.waits_count}; }

  // The same nodes as places in their streams.
  struct Place {
    std::uint32_t stream = 0, position = 0;
  };
  std::span<const Place> wait_places(const PlanNode& node) const { return {wait_places_.data() + node.waits_begin, node.waits_count}; }

  std::uint32_t segment_count() const { return static_cast<std::uint32_t>(cuts_.size()); }
  std::uint32_t segment_start(std::uint32_t segment) const { return cuts_[segment]; }  // first block id
  std::span<const SegmentRange> segments(const TraceRequest& request) const;          // one range a run

  double first_start_s() const { return first_start_s_; }
  double last_start_s() const { return last_start_s_; }
  const Session& session() const { return *session_; }

 private:
  friend class PlanBuilder;
  const Session* session_;
  std::vector<PlanNode> nodes_;
  std::vector<PlanStream> streams_;
  std::vector<std::uint32_t> by_spawn_, by_join_;  // streams, ordered by their spawn or join node
  std::vector<std::uint32_t> spawn_begin_, join_begin_;  // by root node and one more: where its streams begin there
  std::vector<std::uint32_t> waits_;
  std::vector<Place> wait_places_;                 // of waits_
  std::vector<std::uint32_t> cuts_;
  std::vector<SegmentRange> segments_;             // one a run of the session
  std::uint32_t first_run_ = 0;
  double first_start_s_ = 0, last_start_s_ = 0;
};

}  // namespace rackcast
