// Every data movement goes through here. `simgrid` is the reference; `fluid` is exact max-min of our own.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace rackcast {

using LinkId = std::uint32_t;

class Network {
 public:
  virtual ~Network() = default;
  // Set once, before the first start(). Called from fire() or, on equal dates, from start(): only update state there.
  std::function<void(std::uint64_t tag, bool ok, double time_s)> on_done;
  virtual LinkId add_link(double bytes_per_s) = 0;  // before the first start()
  // A flow over `route` (each link once, no duplicates). bytes >= 1. false: a link of the route is down.
  virtual bool start(double now_s, std::span<const LinkId> route, std::uint64_t bytes, std::uint64_t tag) = 0;
  virtual double next_time_s() = 0;   // of the next completion, +infinity if idle
  virtual void fire() = 0;            // runs exactly to next_time_s() and reports completions
  virtual void set_capacity(double now_s, LinkId link, double bytes_per_s) = 0;  // 0 = down: its flows fail
  virtual double bytes_carried(LinkId link) const = 0;
};

}  // namespace rackcast
