// Exact max-min sharing. Two things make it fast and change nothing in the result:
//  - a link whose flows' own bounds (smallest capacity on a flow's route) add up to at most its capacity cannot bind,
//    so a change spreads only through links that can;
//  - changes of one instant are solved once, when the next completion is asked for.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/engine/network.hpp"

namespace rackcast {
namespace {

using FlowId = std::uint32_t;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t max_hops = 8;

struct Hop {
  LinkId link;
  std::uint32_t position;  // of this flow in the link's member list
};

struct Member {
  FlowId flow;
  std::uint32_t hop;  // index of this link in the flow's route
};

struct Flow {
  std::array<Hop, max_hops> hops;
  std::uint32_t hop_count = 0;
  std::uint32_t heap_position = nowhere;
  double remaining = 0;  // bytes left at `since`
  double since = 0;
  double rate = 0;
  double end = infinity;  // date of completion at this rate
  double bound = 0;       // smallest capacity on its route
  std::uint64_t bytes = 0, tag = 0, sequence = 0;
  std::uint64_t visited = 0;  // stamp of the last solve that took it in
  bool fixed = false;         // within a solve: has its final rate
};

struct Link {
  double capacity = 0;
  double bound_sum = 0;  // of its flows' bounds
  double carried = 0;
  std::vector<Member> members;
  std::uint64_t visited = 0;
  std::uint32_t slot = nowhere;  // within a solve: its place among the component's links that can bind
  bool down = false, changed = false;
  bool can_bind() const { return bound_sum > capacity; }
};

// What water-filling knows of a link.
struct Level {
  double left;            // capacity not given out yet
  std::uint32_t waiting;  // flows without a final rate
  LinkId link;
};

class FluidNetwork final : public Network {
 public:
  LinkId add_link(double bytes_per_s) override {
    RACKCAST_CHECK(bytes_per_s > 0, "a new link needs a capacity");
    Link link;
    link.capacity = bytes_per_s;
    links_.push_back(std::move(link));
    return static_cast<LinkId>(links_.size() - 1);
  }

  bool start(double now_s, std::span<const LinkId> route, std::uint64_t bytes, std::uint64_t tag) override {
    RACKCAST_CHECK(bytes >= 1, "a flow needs at least one byte");
    advance(now_s);
    for (const LinkId link : route)
      if (links_[link].down) return false;
    const FlowId id = new_flow();
    Flow& flow = flows_[id];
    flow.remaining = static_cast<double>(bytes);
    flow.since = now_s;
    flow.rate = 0;
    flow.end = infinity;
    flow.bytes = bytes;
    flow.tag = tag;
    flow.sequence = next_sequence_++;
    flow.bound = infinity;
    flow.hop_count = 0;
    for (const LinkId link : route) {
      RACKCAST_CHECK(flow.hop_count < max_hops, "a route has at most 8 links");
      flow.hops[flow.hop_count++].link = link;
      flow.bound = std::min(flow.bound, links_[link].capacity);
    }
    RACKCAST_CHECK(flow.bound < infinity, "a route needs a finite link");
    for (std::uint32_t h = 0; h < flow.hop_count; ++h) join(id, h);
    heap_push(id);
    started_.push_back(id);
    return true;
  }

  double next_time_s() override {
    solve();
    return heap_.empty() ? infinity : std::max(now_, flows_[heap_[0]].end);
  }

  void fire() override {
    const double next = next_time_s();
    RACKCAST_CHECK(next < infinity, "fire() on an idle network");
    now_ = next;
    report_completions();
  }

  void set_capacity(double now_s, LinkId id, double bytes_per_s) override {
    advance(now_s);
    Link& link = links_[id];
    if (bytes_per_s <= 0) {
      take_down(id);
      return;
    }
    RACKCAST_CHECK(std::isinf(bytes_per_s) == std::isinf(link.capacity), "an infinite link stays infinite");
    link.down = false;
    mark(id);
    link.capacity = bytes_per_s;
    for (const Member& member : link.members) {
      Flow& flow = flows_[member.flow];
      double bound = infinity;
      for (std::uint32_t h = 0; h < flow.hop_count; ++h) bound = std::min(bound, links_[flow.hops[h].link].capacity);
      for (std::uint32_t h = 0; h < flow.hop_count; ++h) {
        mark(flow.hops[h].link);
        links_[flow.hops[h].link].bound_sum += bound - flow.bound;
      }
      flow.bound = bound;
    }
  }

  double bytes_carried(LinkId link) const override { return links_[link].carried; }
  std::string describe() const override { return "fluid: exact max-min, zero latency, 1 ns resolution"; }

 private:
  // Brings the clock to now_s, which lies before the next completion or within the resolution of it.
  void advance(double now_s) {
    RACKCAST_CHECK(now_s >= now_, "time went backwards");
    if (now_s == now_) return;
    solve();
    RACKCAST_CHECK(heap_.empty() || now_s < flows_[heap_[0]].end + network_resolution_s, "a completion was jumped over");
    now_ = now_s;
    if (!heap_.empty() && flows_[heap_[0]].end < now_ + network_resolution_s) report_completions();
  }

  void report_completions() {
    done_.clear();
    while (!heap_.empty() && flows_[heap_[0]].end < now_ + network_resolution_s) {
      done_.push_back(heap_[0]);
      heap_remove(heap_[0]);
    }
    finish(done_, true);
  }

  void take_down(LinkId id) {
    Link& link = links_[id];
    if (link.down) return;
    link.down = true;
    solve();
    std::vector<FlowId> failed;
    failed.reserve(link.members.size());
    for (const Member& member : link.members) failed.push_back(member.flow);
    for (const FlowId flow : failed) heap_remove(flow);
    report_completions();
    finish(failed, false);
  }

  // Takes flows that are out of the heap off their links, then reports them in the order of their start.
  void finish(std::vector<FlowId>& ended, bool ok) {
    std::sort(ended.begin(), ended.end(), [&](FlowId a, FlowId b) { return flows_[a].sequence < flows_[b].sequence; });
    for (const FlowId id : ended) {
      Flow& flow = flows_[id];
      const double left = ok ? 0 : std::max(0.0, flow.remaining - flow.rate * (now_ - flow.since));
      for (std::uint32_t h = 0; h < flow.hop_count; ++h) {
        links_[flow.hops[h].link].carried += static_cast<double>(flow.bytes) - left;
        leave(id, h);
      }
    }
    for (const FlowId id : ended) {
      const std::uint64_t tag = flows_[id].tag;
      free_.push_back(id);
      on_done(tag, ok, now_);
    }
  }

  FlowId new_flow() {
    if (!free_.empty()) {
      const FlowId id = free_.back();
      free_.pop_back();
      return id;
    }
    flows_.emplace_back();
    return static_cast<FlowId>(flows_.size() - 1);
  }

  // A link is marked when it could bind before a change or can after it: its flows' rates may move.
  void mark(LinkId id) {
    Link& link = links_[id];
    if (link.changed) return;
    link.changed = true;
    changed_.push_back(id);
  }

  void join(FlowId id, std::uint32_t hop) {
    Hop& at = flows_[id].hops[hop];
    Link& link = links_[at.link];
    at.position = static_cast<std::uint32_t>(link.members.size());
    link.members.push_back({id, hop});
    link.bound_sum += flows_[id].bound;
    if (link.can_bind()) mark(at.link);
  }

  void leave(FlowId id, std::uint32_t hop) {
    const Hop at = flows_[id].hops[hop];
    Link& link = links_[at.link];
    if (link.can_bind()) mark(at.link);
    const Member last = link.members.back();
    link.members[at.position] = last;
    flows_[last.flow].hops[last.hop].position = at.position;
    link.members.pop_back();
    if (link.members.empty()) link.bound_sum = 0;  // no rounding survives an idle moment
    else link.bound_sum -= flows_[id].bound;
  }

  void solve() {
    if (changed_.empty() && started_.empty()) return;
    ++stamp_;
    component_.clear();
    levels_.clear();
    shares_.clear();
    for (const LinkId id : changed_) {
      links_[id].changed = false;
      take_link(id);
    }
    changed_.clear();
    for (std::size_t i = 0; i < component_.size(); ++i) spread(component_[i]);
    if (!component_.empty()) fill();
    for (const FlowId id : started_)  // those that meet no link that can bind
      if (flows_[id].heap_position != nowhere && flows_[id].visited != stamp_ && flows_[id].rate == 0)
        set_rate(id, flows_[id].bound);
    started_.clear();
  }

  void take_link(LinkId id) {
    Link& link = links_[id];
    if (link.visited == stamp_) return;
    link.visited = stamp_;
    link.slot = nowhere;
    for (const Member& member : link.members) {
      Flow& flow = flows_[member.flow];
      if (flow.visited == stamp_) continue;
      flow.visited = stamp_;
      flow.fixed = false;
      component_.push_back(member.flow);
    }
    if (!link.can_bind()) return;
    link.slot = static_cast<std::uint32_t>(levels_.size());
    levels_.push_back({link.capacity, static_cast<std::uint32_t>(link.members.size()), id});
    shares_.push_back(link.capacity / static_cast<double>(link.members.size()));
  }

  void spread(FlowId id) {
    const Flow& flow = flows_[id];
    for (std::uint32_t h = 0; h < flow.hop_count; ++h)
      if (links_[flow.hops[h].link].can_bind()) take_link(flow.hops[h].link);
  }

  // Water-filling: the lowest level among the links' equal shares and the flows' own bounds is final; repeat.
  void fill() {
    const auto lower = [&](FlowId a, FlowId b) { return flows_[a].bound < flows_[b].bound; };
    if (!std::is_sorted(component_.begin(), component_.end(), lower))
      std::stable_sort(component_.begin(), component_.end(), lower);
    for (auto next = component_.begin();;) {
      while (next != component_.end() && flows_[*next].fixed) ++next;
      if (next == component_.end()) return;
      std::size_t tightest = 0;
      double level = infinity;
      for (std::size_t i = 0; i < shares_.size(); ++i)
        if (shares_[i] < level) {
          level = shares_[i];
          tightest = i;
        }
      if (flows_[*next].bound <= level) {
        fix(*next, flows_[*next].bound);
        continue;
      }
      for (const Member& member : links_[levels_[tightest].link].members)
        if (!flows_[member.flow].fixed) fix(member.flow, level);
    }
  }

  void fix(FlowId id, double rate) {
    Flow& flow = flows_[id];
    flow.fixed = true;
    for (std::uint32_t h = 0; h < flow.hop_count; ++h) {
      const Link& link = links_[flow.hops[h].link];
      if (link.visited != stamp_ || link.slot == nowhere) continue;
      Level& at = levels_[link.slot];
      at.left = std::max(0.0, at.left - rate);
      shares_[link.slot] = --at.waiting > 0 ? at.left / at.waiting : infinity;
    }
    set_rate(id, rate);
  }

  void set_rate(FlowId id, double rate) {
    Flow& flow = flows_[id];
    if (flow.rate == rate) return;
    flow.remaining -= flow.rate * (now_ - flow.since);
    flow.since = now_;
    flow.rate = rate;
    flow.end = now_ + std::max(0.0, flow.remaining) / rate;
    heap_move(id);
  }

  // A binary heap of live flows by (end, sequence) that knows where each flow is.
  bool before(FlowId a, FlowId b) const {
    return flows_[a].end != flows_[b].end ? flows_[a].end < flows_[b].end : flows_[a].sequence < flows_[b].sequence;
  }
  void put(std::size_t position, FlowId id) {
    heap_[position] = id;
    flows_[id].heap_position = static_cast<std::uint32_t>(position);
  }
  void heap_push(FlowId id) {
    heap_.push_back(id);
    put(heap_.size() - 1, id);
    heap_move(id);
  }
  void heap_move(FlowId id) {
    std::size_t at = flows_[id].heap_position;
    while (at > 0 && before(id, heap_[(at - 1) / 2])) {
      put(at, heap_[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    for (;;) {
      std::size_t child = 2 * at + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
      if (!before(heap_[child], id)) break;
      put(at, heap_[child]);
      at = child;
    }
    put(at, id);
  }
  void heap_remove(FlowId id) {
    const std::size_t at = flows_[id].heap_position;
    flows_[id].heap_position = nowhere;
    const FlowId last = heap_.back();
    heap_.pop_back();
    if (last == id) return;
    put(at, last);
    heap_move(last);
  }

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<FlowId> free_, heap_, started_, done_, component_;
  std::vector<LinkId> changed_;
  std::vector<Level> levels_;
  std::vector<double> shares_;  // of levels_: what each waiting flow would get
  std::uint64_t next_sequence_ = 0, stamp_ = 0;
  double now_ = 0;
};

}  // namespace

std::unique_ptr<Network> make_fluid_network() { return std::make_unique<FluidNetwork>(); }

}  // namespace rackcast
