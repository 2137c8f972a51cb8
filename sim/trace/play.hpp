// One play of a session tree: how far each stream is, what may be sent and when. Knows nothing of other lanes. Small:
// tens of thousands are alive at once, all sharing their sessions' plans.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sim/trace/session_plan.hpp"

namespace rackcast {

class Play {
 public:
  // At turn 0, due at now_s.
  void start(const SessionPlan& plan, double now_s);
  // Inside the session: what started before `from_s` (recorded) counts as done, the next requests are due at now_s.
  // Returns the nodes to prime the cache with: the last request of every stream that is under way.
  std::vector<std::uint32_t> start_inside(const SessionPlan& plan, double from_s, double now_s);

  // Earliest due time among requests whose waits are over; infinity when all wait for completions.
  double next_s() const;
  // Sends the earliest request, lowest stream first. delay_scale 0 leaves out all gaps.
  std::uint32_t issue(const SessionPlan& plan, double now_s, double delay_scale);
  void finish(const SessionPlan& plan, std::uint32_t node, double now_s, double delay_scale);

  std::uint32_t in_flight() const { return in_flight_; }
  bool done(const SessionPlan& plan) const { return streams_done_ == plan.streams().size(); }
  void shift(double earlier_s);              // all due times
  void restart_gaps(double now_s, double delay_scale);  // every pending request is due its full gap after now_s
  // Blocks of the request an infinite cache holds already; holds all of them afterwards.
  std::uint32_t see(const SessionPlan& plan, std::span<const HashRun> runs, std::span<const SegmentRange> segments);

 private:
  struct Head {  // next request of a stream that is under way and has none in flight
    std::uint32_t stream;
    bool waiting;     // for other streams
    double due_s;
    double gap_s;     // recorded
  };
  void add_head(const SessionPlan& plan, std::uint32_t stream, double now_s, double delay_scale);
  bool must_wait(const SessionPlan& plan, std::uint32_t node) const;
  bool stream_done(const SessionPlan& plan, std::uint32_t stream) const { return done_[stream] == plan.streams()[stream].count; }

  std::vector<std::uint32_t> done_;   // requests completed, by stream
  std::vector<Head> heads_;
  std::vector<std::uint64_t> seen_;   // one bit a segment
  std::uint32_t streams_done_ = 0;
  std::uint32_t in_flight_ = 0;
};

}  // namespace rackcast
