// What fits into a GPU of an engine: weights, activations and KV line by line, and how many tokens of KV are left.
#pragma once
#include <string>
#include <vector>

#include "sim/spec/deployment.hpp"
#include "sim/spec/model.hpp"
#include "sim/spec/rack.hpp"

namespace rackcast {

enum class EngineRole { prefill, decode, aggregated };

struct MemoryLine {
  std::string what;
  double bytes = 0;
  std::string how;  // the sum behind it
};

struct MemoryPlan {
  std::vector<MemoryLine> lines;      // per GPU; everything but KV
  std::vector<std::string> notes;     // e.g. experts padded with redundant ones
  double memory_bytes = 0;            // usable on the GPU
  double used_bytes = 0;              // sum of lines
  double kv_pool_bytes = 0;           // memory_fraction of what is left, or what gpu_share leaves
  double kv_bytes_per_token = 0;      // on this GPU
  double kv_fixed_bytes = 0;          // per running request, on this GPU
  double kv_capacity_tokens = 0;      // of a rank (DEP) or of the engine (TP), before fixed bytes
  int expert_slots_per_rank = 0;      // routed experts a rank holds of each MoE layer, redundant ones included
  bool fits = false;                  // at least one request of `minimum_context` fits
  std::string table() const;          // the sum, line by line, as a person reads it
};

// minimum_context: tokens that one request must be able to hold (0: any positive pool will do).
MemoryPlan plan_memory(const ModelSpec& model, const RackSpec& rack, const EngineSpec& engine, EngineRole role,
                       const DeploymentSpec& deployment, double minimum_context = 0);

// Experts that fill an engine's slots beyond those asked for, as a sentence; empty: none.
std::string padding_note(int experts, int redundant, int ranks);

// Throws UserError with the table when it does not fit.
void require_fit(const MemoryPlan& plan, const std::string& who);

}  // namespace rackcast
