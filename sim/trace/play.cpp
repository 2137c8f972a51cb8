#include "sim/trace/play.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "sim/base/error.hpp"

namespace rackcast {

void Play::start(const SessionPlan& plan, double now_s) {
  done_.assign(plan.streams().size(), 0);
  seen_.assign((plan.segment_count() + 63) / 64, 0);
  heads_.clear();
  streams_done_ = in_flight_ = 0;
  heads_.push_back({0, must_wait(plan, 0), now_s, 0});
}

std::vector<std::uint32_t> Play::start_inside(const SessionPlan& plan, double from_s, double now_s) {
  start(plan, now_s);
  heads_.clear();
  std::vector<std::uint32_t> primers;
  const auto streams = plan.streams();
  for (std::uint32_t s = 0; s < streams.size(); ++s) {
    const auto nodes = plan.nodes().subspan(streams[s].first, streams[s].count);
    const auto next = std::partition_point(nodes.begin(), nodes.end(), [from_s](const PlanNode& node) { return node.start_s < from_s; });
    done_[s] = static_cast<std::uint32_t>(next - nodes.begin());
    if (stream_done(plan, s)) ++streams_done_;
    else if (done_[s] > 0) primers.push_back(streams[s].first + done_[s] - 1);
  }
  for (std::uint32_t s = 0; s < streams.size(); ++s) {
    const bool under_way = s == 0 || done_[s] > 0 || done_[0] > streams[s].spawn;
    if (under_way && !stream_done(plan, s)) add_head(plan, s, now_s, 0);
  }
  return primers;
}

double Play::next_s() const {
  double next = std::numeric_limits<double>::infinity();
  for (const Head& head : heads_)
    if (!head.waiting) next = std::min(next, head.due_s);
  return next;
}

std::uint32_t Play::issue(const SessionPlan& plan, double now_s, double delay_scale) {
  std::size_t best = heads_.size();
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    if (heads_[h].waiting) continue;
    if (best == heads_.size() || heads_[h].due_s < heads_[best].due_s ||
        (heads_[h].due_s == heads_[best].due_s && heads_[h].stream < heads_[best].stream))
      best = h;
  }
  RACKCAST_CHECK(best < heads_.size(), "a play that is asked for a request has one due");
  const std::uint32_t stream = heads_[best].stream;
  heads_[best] = heads_.back();
  heads_.pop_back();
  ++in_flight_;
  const std::uint32_t node = plan.streams()[stream].first + done_[stream];
  if (stream == 0)
    for (const std::uint32_t child : plan.spawned_by(node))
      if (plan.streams()[child].at_issue && done_[child] == 0) add_head(plan, child, now_s, delay_scale);
  return node;
}

void Play::finish(const SessionPlan& plan, std::uint32_t node, double now_s, double delay_scale) {
  const std::uint32_t stream = plan.nodes()[node].stream;
  --in_flight_;
  ++done_[stream];
  if (stream_done(plan, stream)) ++streams_done_;
  // What waited may go on now; waits are few, so all are looked at.
  for (Head& head : heads_) {
    if (!head.waiting) continue;
    head.waiting = must_wait(plan, plan.streams()[head.stream].first + done_[head.stream]);
    if (!head.waiting) head.due_s = std::max(head.due_s, now_s);
  }
  if (!stream_done(plan, stream)) add_head(plan, stream, now_s, delay_scale);
  if (stream == 0)
    for (const std::uint32_t child : plan.spawned_by(node))
      if (!plan.streams()[child].at_issue && done_[child] == 0) add_head(plan, child, now_s, delay_scale);
}

void Play::add_head(const SessionPlan& plan, std::uint32_t stream, double now_s, double delay_scale) {
  const std::uint32_t node = plan.streams()[stream].first + done_[stream];
  const double gap_s = plan.nodes()[node].delay_s;
  heads_.push_back({stream, must_wait(plan, node), now_s + delay_scale * gap_s, gap_s});
}

bool Play::must_wait(const SessionPlan& plan, std::uint32_t node) const {
  for (const SessionPlan::Place other : plan.wait_places(plan.nodes()[node]))
    if (done_[other.stream] <= other.position) return true;
  if (plan.nodes()[node].stream != 0) return false;
  const auto joined = plan.joined_by(node);
  return std::any_of(joined.begin(), joined.end(), [&](std::uint32_t stream) { return !stream_done(plan, stream); });
}

void Play::shift(double earlier_s) {
  for (Head& head : heads_) head.due_s -= earlier_s;
}

void Play::restart_gaps(double now_s, double delay_scale) {
  for (Head& head : heads_) head.due_s = now_s + delay_scale * head.gap_s;
}

std::uint32_t Play::see(const SessionPlan& plan, std::span<const HashRun> runs, std::span<const SegmentRange> segments) {
  std::uint32_t hit = 0;
  bool unbroken = true;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    std::uint32_t first_unseen = segments[r].end;
    for (std::uint32_t at = segments[r].begin; at < segments[r].end;) {
      const std::uint32_t bit = at % 64, span = std::min(64 - bit, segments[r].end - at);
      const std::uint64_t mask = (span == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << span) - 1) << bit;
      const std::uint64_t missing = mask & ~seen_[at / 64];
      if (missing != 0 && first_unseen == segments[r].end)
        first_unseen = at - bit + static_cast<std::uint32_t>(std::countr_zero(missing));
      seen_[at / 64] |= mask;
      at += span;
    }
    if (!unbroken) continue;
    if (first_unseen < segments[r].end) {
      hit += plan.segment_start(first_unseen) - runs[r].first;
      unbroken = false;
    } else {
      hit += runs[r].count;
    }
  }
  return hit;
}

}  // namespace rackcast
