// What goes wrong during a run: engines, GPUs, network cards and NVLink planes that fail or slow down, at a time or at a
// rate, and what happens to the requests that they held.
#pragma once
#include <vector>

#include "sim/base/schema.hpp"

namespace rackcast {

enum class FailureKind { engine, gpu, straggler, nic, nvlink };
enum class FailurePool { prefill, decode, aggregated };
enum class InFlightPolicy { retry, lose };
enum class ReloadTier { peer, host, disk, network };
extern const std::vector<Choice> failure_kinds, failure_pools, in_flight_policies, reload_tiers;

struct FailureSpec {
  FailureKind kind = FailureKind::engine;
  FailurePool pool = FailurePool::decode;
  int engine = 0;                     // of the pool
  int gpu = 0;                        // of the engine
  Seconds at{-1};                     // since the measured window opened; -1: at a rate
  Seconds every{-1};                  // mean time between failures of the whole pool, each at a random engine and GPU
  Seconds lasts{-1};                  // straggler, nic, nvlink: until all is as before; -1: for good
  double share = 1;                   // nic, nvlink: of the bandwidth that is lost; straggler: of the speed
};
void fields(Visitor& v, FailureSpec& f);

struct FailuresSpec {
  std::vector<FailureSpec> events;
  InFlightPolicy in_flight = InFlightPolicy::retry;
  Seconds detection{5};
  Seconds restart{60};                // besides reading the weights
  ReloadTier reload = ReloadTier::host;
  BytesPerSecond reload_bandwidth{-1};  // per node
};
void fields(Visitor& v, FailuresSpec& f);

}  // namespace rackcast
