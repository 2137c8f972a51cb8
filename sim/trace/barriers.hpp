// Start barriers of the AgentX replay: in one scope (the root with its undeclared chains, or one subagent with its
// chains) a request waits, on every other stream, for the latest request that had ended when it started in the record.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace rackcast {

struct RecordedCall {
  std::uint32_t node = 0;
  std::uint32_t stream = 0;
  double start_s = 0;
  double end_s = 0;
};

// For each call, in the given order, the nodes that it waits for, ascending. A node that another one of the list
// waited for itself is left out.
std::vector<std::vector<std::uint32_t>> start_barriers(std::span<const RecordedCall> scope);

}  // namespace rackcast
