// Every data movement goes through here. `simgrid` is the reference; `fluid` is exact max-min of our own.
// Both share the links of a route max-min fairly, without latency: what a flow waits before it starts is the caller's.
// Time resolution is 1 ns: flows that end within it end together, reported in the order of their start.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "sim/spec/deployment.hpp"

namespace rackcast {

using LinkId = std::uint32_t;

inline constexpr double network_resolution_s = 1e-9;

// Call order: add_link for every link, then the rest with now_s never decreasing and never beyond next_time_s().
class Network {
 public:
  virtual ~Network() = default;
  // Set once, before the first start(). Called from fire(), from set_capacity(link, 0), and from any call that brings
  // the clock to a date within the resolution of a completion. It may call start() at time_s, nothing else.
  std::function<void(std::uint64_t tag, bool ok, double time_s)> on_done;
  // One direction of a wire. +infinity: never binds, but can go down.
  virtual LinkId add_link(double bytes_per_s) = 0;  // before the first start()
  // A flow over `route`, at least one of whose links is finite; each link once, 8 links at most. bytes >= 1.
  // false: a link of the route is down, and nothing started.
  virtual bool start(double now_s, std::span<const LinkId> route, std::uint64_t bytes, std::uint64_t tag) = 0;
  virtual double next_time_s() = 0;  // of the next completion, +infinity if idle
  virtual void fire() = 0;           // runs exactly to next_time_s() and reports completions
  // 0 = down: its flows fail at once. An infinite link stays infinite or is down.
  virtual void set_capacity(double now_s, LinkId link, double bytes_per_s) = 0;
  // By flows that ended: all of a finished one's bytes, the part that a failed one had moved.
  virtual double bytes_carried(LinkId link) const = 0;
  virtual std::string describe() const = 0;  // for the manifest: implementation, version, settings
};

// simgrid: at most one in the life of a process (SimGrid's clock is global); callers that need several fork.
std::unique_ptr<Network> make_network(NetworkKind kind);
std::unique_ptr<Network> make_simgrid_network();
std::unique_ptr<Network> make_fluid_network();

}  // namespace rackcast
