// A fixed number of users, each with one request in flight and no think time (InferenceX's 8k1k, 1k1k, 1k8k). With
// turns > 1 a user plays sessions: every turn repeats the session so far, the previous answers and `input_tokens` new
// ones. A share of the first turn may be one of `prefix_groups` prefixes common to many sessions.
#pragma once
#include "sim/trace/lengths.hpp"
#include "sim/trace/load.hpp"

namespace rackcast {

struct ClosedLoopOptions {
  std::uint32_t users = 1;
  LengthOptions lengths{};
  std::uint32_t turns = 1;
  double shared_prefix = 0;         // share of the first turn's nominal input, rounded down to blocks
  std::uint32_t prefix_groups = 1;  // sessions take the groups in turn
  std::uint64_t requests = 0;       // stop after this many measured ones; 0: never
  std::uint64_t warmup_requests = 0;  // the first ones, not counted; they flow into the measured ones without a pause
  std::uint64_t seed = 42;
};

std::unique_ptr<Load> make_closed_loop(const ClosedLoopOptions& options);

}  // namespace rackcast
