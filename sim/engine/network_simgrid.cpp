// SimGrid 3.32 as a slave of our clock: one-sided comms started from outside any actor, CM02 without latency,
// crosstraffic and window limit. SimGrid reads a route once, when a flow starts. So any list of links can be a route:
// there are two hosts in a star zone, and the links that lead out of the first are replaced before each start.
//
// SimGrid's own ways that are worked around here, each with a test that shows it:
//  - a flow keeps the bound of the slowest link at its start after that link recovers: bounds are lifted on an increase;
//  - a cancelled or failed flow keeps its share until the next step: a timer at `now` makes a step of zero length;
//  - run_until() to the exact date of a completion may stop short: one step a nanosecond past it ends on the date;
//  - a comm over a dead link or of zero bytes is lost silently: refused before it gets there;
//  - over-commitment when flows start together over links with latency, latency-dependent shares: latency stays 0.
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/engine/network.hpp"

namespace rackcast {
namespace {

namespace s4u = simgrid::s4u;
constexpr double infinity = std::numeric_limits<double>::infinity();

// Set after the engine exists and before the first zone.
constexpr const char* settings[] = {"network/model:CM02",       "network/crosstraffic:0", "network/weight-S:0",
                                    "network/TCP-gamma:1e30",   "network/optim:Lazy",     "surf/precision:1e-9"};

struct Flow {
  s4u::CommPtr comm;
  std::vector<LinkId> route;
  std::uint64_t bytes = 0, tag = 0, sequence = 0;
  bool live = false;
};

struct Link {
  double capacity = 0;
  double carried = 0;
  bool down = false;
  s4u::Link* link = nullptr;  // null: infinite, in no SimGrid route
};

class SimGridNetwork final : public Network {
 public:
  SimGridNetwork() {
    RACKCAST_CHECK(!existed, "one SimGrid network in the life of a process");
    existed = true;
    static char program[] = "rackcast", quiet[] = "--log=root.thres:warning";
    static char* arguments[] = {program, quiet, nullptr};
    int count = 2;
    engine_ = std::make_unique<s4u::Engine>(&count, arguments);
    for (const char* setting : settings) s4u::Engine::set_config(setting);
    zone_ = s4u::create_star_zone("network");
  }

  ~SimGridNetwork() override {
    reporting_ = false;
    for (Flow& flow : flows_)
      if (flow.live) drop(flow);
    if (model_) step_here();
    trash_.clear();
  }

  LinkId add_link(double bytes_per_s) override {
    RACKCAST_CHECK(!model_, "links come before the first flow");
    RACKCAST_CHECK(bytes_per_s > 0, "a new link needs a capacity");
    Link link;
    link.capacity = bytes_per_s;
    if (!std::isinf(bytes_per_s)) {
      link.link = zone_->create_link(fmt::format("link{}", links_.size()), bytes_per_s);
      link.link->set_latency(0);
      link.link->seal();
    }
    links_.push_back(link);
    return static_cast<LinkId>(links_.size() - 1);
  }

  bool start(double now_s, std::span<const LinkId> route, std::uint64_t bytes, std::uint64_t tag) override {
    RACKCAST_CHECK(bytes >= 1, "a flow needs at least one byte");
    advance(now_s);
    if (!model_) seal();
    for (const LinkId link : route)
      if (links_[link].down) return false;
    set_route(route);
    const std::uint32_t slot = new_flow();
    Flow& flow = flows_[slot];
    flow.route.assign(route.begin(), route.end());
    flow.bytes = bytes;
    flow.tag = tag;
    flow.sequence = next_sequence_++;
    flow.comm = s4u::Comm::sendto_init();
    flow.comm->set_payload_size(bytes);
    // SimGrid keeps the tag for us; nobody follows the pointer.
    flow.comm->set_data(reinterpret_cast<void*>(static_cast<std::uintptr_t>(slot) + 1));  // NOLINT(performance-no-int-to-ptr)
    flow.comm->set_source(from_)->set_destination(to_);  // the second setter starts it
    flow.live = true;
    ++live_;
    next_known_ = false;
    return true;
  }

  double next_time_s() override {
    if (!next_known_) {
      const double now = s4u::Engine::get_clock();
      const double wait = live_ > 0 ? model_->next_occurring_event(now) : -1;
      RACKCAST_CHECK(live_ == 0 || wait >= 0, "SimGrid lost a flow");
      next_ = wait < 0 ? infinity : now + wait;
      next_known_ = true;
    }
    return next_;
  }

  void fire() override {
    const double next = next_time_s();
    RACKCAST_CHECK(next < infinity, "fire() on an idle network");
    trash_.clear();
    now_ = std::max(now_, next);
    // One call makes one step; the first may go to a timer that rounding left an ulp ahead.
    for (int steps = 0; ended_.empty(); ++steps) {
      RACKCAST_CHECK(steps < 4, "SimGrid does not reach its own next event");
      engine_->run_until(std::max(next, s4u::Engine::get_clock()) + network_resolution_s);
    }
    report();
  }

  void set_capacity(double now_s, LinkId id, double bytes_per_s) override {
    advance(now_s);
    if (!model_) seal();
    Link& link = links_[id];
    next_known_ = false;
    if (bytes_per_s <= 0) {
      if (!link.down) take_down(id);
      return;
    }
    RACKCAST_CHECK(std::isinf(bytes_per_s) == !link.link, "an infinite link stays infinite");
    if (link.down && link.link) link.link->turn_on();
    link.down = false;
    if (!link.link) return;
    const bool increase = bytes_per_s > link.capacity;
    link.capacity = bytes_per_s;
    link.link->set_bandwidth(bytes_per_s);
    if (increase)
      for (auto& action : *model_->get_started_action_set()) action.set_bound(-1);
  }

  double bytes_carried(LinkId link) const override { return links_[link].carried; }

  std::string describe() const override {
    std::string text = fmt::format("simgrid {}.{}", SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR);
    for (const char* setting : settings) text += fmt::format(" {}", setting);
    return text;
  }

 private:
  void seal() {
    from_ = zone_->create_host("from", 1.0);
    to_ = zone_->create_host("to", 1.0);
    zone_->add_route(nullptr, to_->get_netpoint(), nullptr, nullptr, {}, false);
    zone_->seal();
    engine_->seal_platform();
    for (auto* model : engine_->get_all_models())
      if (model->get_name().rfind("Network", 0) == 0) model_ = model;
    RACKCAST_CHECK(model_, "SimGrid has no network model");
    s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) { ended(activity); });
  }

  void set_route(std::span<const LinkId> route) {
    way_.clear();
    for (const LinkId link : route)
      if (links_[link].link) way_.emplace_back(links_[link].link);
    RACKCAST_CHECK(!way_.empty(), "a route needs a finite link");
    zone_->add_route(from_->get_netpoint(), nullptr, nullptr, nullptr, way_, false);
  }

  std::uint32_t new_flow() {
    if (!free_.empty()) {
      const std::uint32_t slot = free_.back();
      free_.pop_back();
      return slot;
    }
    flows_.emplace_back();
    return static_cast<std::uint32_t>(flows_.size() - 1);
  }

  // SimGrid's signal: remember who ended; report() tells the caller once SimGrid has returned.
  void ended(const s4u::Activity& activity) {
    const auto data = reinterpret_cast<std::uintptr_t>(activity.get_data<void>());
    if (data == 0) return;  // dropped by us
    RACKCAST_CHECK(activity.get_state() == s4u::Activity::State::FINISHED, "SimGrid ended a flow that we did not end");
    ended_.push_back(static_cast<std::uint32_t>(data - 1));
  }

  void report() {
    if (ended_.empty()) return;
    next_known_ = false;
    std::vector<std::uint32_t> ended;
    ended.swap(ended_);
    for (const std::uint32_t slot : ended)
      for (const LinkId link : flows_[slot].route) links_[link].carried += static_cast<double>(flows_[slot].bytes);
    release(ended, true);
  }

  void take_down(LinkId id) {
    Link& link = links_[id];
    link.down = true;
    std::vector<std::uint32_t> failed;
    for (std::uint32_t slot = 0; slot < flows_.size(); ++slot) {
      Flow& flow = flows_[slot];
      if (!flow.live || std::find(flow.route.begin(), flow.route.end(), id) == flow.route.end()) continue;
      const double moved = static_cast<double>(flow.bytes) - flow.comm->get_remaining();
      for (const LinkId hop : flow.route) links_[hop].carried += moved;
      drop(flow);
      failed.push_back(slot);
    }
    if (link.link) link.link->turn_off();
    step_here();
    release(failed, false);
  }

  void drop(Flow& flow) {
    flow.comm->set_data(nullptr);
    flow.comm->cancel();
  }

  void release(std::vector<std::uint32_t>& slots, bool ok) {
    std::sort(slots.begin(), slots.end(),
              [&](std::uint32_t a, std::uint32_t b) { return flows_[a].sequence < flows_[b].sequence; });
    std::vector<std::uint64_t> tags;
    for (const std::uint32_t slot : slots) {
      tags.push_back(flows_[slot].tag);
      flows_[slot].live = false;
      trash_.push_back(std::move(flows_[slot].comm));  // SimGrid still holds on to it for a step
      free_.push_back(slot);
      --live_;
    }
    for (const std::uint64_t tag : tags) on_done(tag, ok, now_);
  }

  // A step of zero length: SimGrid takes ended flows out of its sharing only within a step.
  void step_here() {
    const double now = s4u::Engine::get_clock();
    simgrid::kernel::timer::Timer::set(now, [] {});
    engine_->run_until(now);
    next_known_ = false;
    if (reporting_) report();
  }

  // SimGrid adds up differences, so its clock may stand an ulp beside now_: dates are told by now_.
  void advance(double now_s) {
    RACKCAST_CHECK(now_s >= now_, "time went backwards");
    if (now_s == now_) return;
    RACKCAST_CHECK(now_s < next_time_s() + network_resolution_s, "a completion was jumped over");
    if (!model_) seal();
    now_ = now_s;
    if (now_s <= s4u::Engine::get_clock()) return;
    simgrid::kernel::timer::Timer::set(now_s, [] {});  // run_until alone may stop up to 10 us short
    engine_->run_until(now_s);
    report();
  }

  static inline bool existed = false;
  std::unique_ptr<s4u::Engine> engine_;
  s4u::NetZone* zone_ = nullptr;
  s4u::Host *from_ = nullptr, *to_ = nullptr;
  simgrid::kernel::resource::Model* model_ = nullptr;
  std::vector<Link> links_;
  std::vector<s4u::LinkInRoute> way_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_, ended_;
  std::vector<s4u::CommPtr> trash_;
  std::size_t live_ = 0;
  std::uint64_t next_sequence_ = 0;
  double now_ = 0, next_ = infinity;
  bool next_known_ = true, reporting_ = true;
};

}  // namespace

std::unique_ptr<Network> make_simgrid_network() { return std::make_unique<SimGridNetwork>(); }

}  // namespace rackcast
