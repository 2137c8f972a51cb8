// The runs with a fixed cost whose counts are stored: two aggregated engines, or two prefill and one decode engine, under
// sessions of four turns of 64 users.
#pragma once
#include "tests/support/small_rack.hpp"

namespace rackcast::test {

inline SimulationOptions fixed_cost(const StepModel& steps, bool split) {
  SimulationOptions options;
  if (split) options.pools = {pool(EngineRole::prefill, 2, 2, steps), pool(EngineRole::decode, 1, 4, steps)};
  else options.pools = {pool(EngineRole::aggregated, 2, 4, steps)};
  for (PoolOptions& p : options.pools) p.shape.kv_tokens = 1 << 20;
  options.transfer.bytes_per_token = 1000;
  options.acceptance = Acceptance(3, 2.5, {});
  options.duration_s = never_s;
  return options;
}

inline std::unique_ptr<Load> sessions(std::uint64_t requests) {
  return make_closed_loop({.users = 64, .lengths = {.input_tokens = 1024, .output_tokens = 128, .range_ratio = 0.8}, .turns = 4,
                           .shared_prefix = 0.5, .prefix_groups = 16, .requests = requests, .seed = 1});
}

}  // namespace rackcast::test
