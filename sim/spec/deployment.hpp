// What is deployed on the rack: engines by role and shape, and every policy. Where a choice moves results it is a
// named key with a stated default. A member of -1 that says so is "auto" in YAML.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/base/schema.hpp"
#include "sim/policy/admission.hpp"
#include "sim/policy/choices.hpp"
#include "sim/policy/eplb_options.hpp"
#include "sim/spec/host.hpp"
#include "sim/spec/kv_transfer.hpp"
#include "sim/spec/speculation.hpp"

namespace rackcast {

enum class KvFormat { nvfp4, fp8_layout };             // V4.1: 890 or 1,630 B/token; others: the model's own first or second format
enum class EngramPlacement { hbm, peer, host };
enum class EnginePath { standard, low_latency };
enum class ExpertSplit { automatic, expert_parallel, tensor_parallel };
enum class NetworkKind { simgrid, fluid };
enum class ClockMode { burst, sustained };
enum class Fidelity { collapsed, layered, flow };

// YAML spelling and meaning, in enumerator order. Those of router, balance and when_full follow sim/policy/choices.hpp.
extern const std::vector<Choice> router_policies, balance_policies, kv_full_policies, kv_formats, engram_placements,
    engine_paths, expert_splits, network_kinds, clock_modes, fidelities;

// One pool of identical engines. Exactly one of dep and tp is set (the other 0).
struct EngineSpec {
  int engines = 0;
  int dep = 0;                        // attention data-parallel over this many ranks
  int tp = 0;                         // tensor parallel over this many ranks
  Tokens max_batched_tokens{16384};   // prefill token budget of one iteration: per rank for DEP, per engine for TP
  int max_requests_per_rank = 256;    // running requests; per rank for DEP, per engine for TP
  Tokens prompt_chunk{0};             // of one prompt in an iteration; 0: as the budget has room
  int answer_iterations = 0;          // without prompts after one with them, while there are answers to make
  EnginePath path = EnginePath::standard;
  ExpertSplit experts = ExpertSplit::automatic;
  std::string cost;                   // cost file; empty = the GPU's name
  // Whole experts on every rank, or a slice of every expert.
  bool expert_parallel() const { return experts == ExpertSplit::automatic || ranks() == 1 ? dep > 0 : experts == ExpertSplit::expert_parallel; }
  int ranks() const { return dep > 0 ? dep : tp; }
  int gpus() const { return engines * ranks(); }
};
void fields(Visitor& v, EngineSpec& e);

struct RouterSpec {
  RouterPolicy policy = RouterPolicy::prefix_affinity;
  double load_limit = 1.5;            // prefix_affinity: leave the home for a target that would be done this many times sooner
  BalancePolicy balance = BalancePolicy::tokens;
  AdmissionSpec admission;
};
void fields(Visitor& v, RouterSpec& r);

struct KvCacheSpec {
  KvFormat format = KvFormat::nvfp4;
  double memory_fraction = 0.9;       // of what weights and activations leave free
  double gpu_share = 0;               // > 0: of the GPU's memory, for weights, activations and KV together
  Bytes kept_state{0};                // of a finished request's window and compressor states, until evicted
  Tokens retention_interval{0};       // between window states that are kept beside those at prompts' ends; 0: states everywhere
  Bytes host_tier_per_node{-1};       // -1: the rack's default; 0: no host tier
  bool prefix_cache = true;
  KvFullPolicy when_full = KvFullPolicy::wait;
};
void fields(Visitor& v, KvCacheSpec& k);


struct DeploymentSpec {
  std::optional<EngineSpec> prefill, decode, aggregated;  // prefill+decode, or aggregated, or prefill alone
  RouterSpec router;
  KvCacheSpec kv_cache;
  KvTransferSpec kv_transfer;
  EngramPlacement engram = EngramPlacement::host;
  EplbSpec eplb;
  SpeculationSpec speculation;
  HostSpec host;
  ClockMode clock = ClockMode::burst;
  int gpus() const;
};
void fields(Visitor& v, DeploymentSpec& d);

}  // namespace rackcast
