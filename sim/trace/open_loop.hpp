// Requests that arrive on their own clock, whatever the system does: a trace at its recorded times, a trace's lengths
// in Poisson arrivals, or fixed lengths in Poisson arrivals. Ends with the trace; without one it is endless.
#pragma once
#include "sim/trace/lengths.hpp"
#include "sim/trace/load.hpp"

namespace rackcast {

struct OpenLoopOptions {
  const Trace* trace = nullptr;      // borrowed for the load's life; null: fixed lengths
  double rate_per_s = 0;             // Poisson; 0: the trace's own times
  LengthOptions lengths{};             // input, output and ratio without a trace; output_limit always
  std::uint64_t requests = 0;        // stop after this many measured ones; 0: never
  std::uint64_t warmup_requests = 0; // the first ones, not counted
  std::uint64_t seed = 42;
};

// UserError when neither a trace nor a rate is given.
std::unique_ptr<Load> make_open_loop(const OpenLoopOptions& options);

}  // namespace rackcast
