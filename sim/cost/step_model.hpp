// The duration of one engine iteration in closed form, from what every rank has in its batch. Built once per
// (model, GPU, rack, engine shape, cost file); then a call costs tens of ns a rank. No SimGrid, no CUDA, no clock.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/catalog.hpp"
#include "sim/cost/costs.hpp"
#include "sim/cost/step_phases.hpp"
#include "sim/spec/deployment.hpp"
#include "sim/spec/model.hpp"
#include "sim/spec/rack.hpp"

namespace rackcast {

class DemandSource;  // sim/policy/expert_demand

// What one rank computes in one iteration. Sums that the engine keeps incrementally; doubles, exact below 2^53.
// A decode (or verify) request with q query tokens at context K adds: decode_tokens += q, decode_requests += 1,
// decode_context += K, decode_query_context += q*K. A prefill chunk of q tokens that ends at context K adds:
// prefill_tokens += q, prefill_requests += 1, prefill_query_context += q*(K - q/2) (the mean context of its queries),
// prefill_context += K, and prefill_tail_tokens += min(q, 128) (V4.1: decoder layers run on the last 128 rows only).
struct RankBatch {
  double decode_tokens = 0;
  double decode_requests = 0;
  double decode_context = 0;
  double decode_query_context = 0;
  double prefill_tokens = 0;
  double prefill_requests = 0;
  double prefill_context = 0;
  double prefill_query_context = 0;
  double prefill_tail_tokens = 0;
  double prefill_tail_query_context = 0;  // sum over tail tokens of their context
  double draft_requests = 0;              // requests that run the draft model in this step
  double new_requests = 0;                // that this step is the first to hold
  double host_s = 0, host_behind_s = 0;   // other work of the rank's host, before and behind the launch of the step
};

struct StepTime {
  double total_s = 0;      // what the engine advances by (host already overlapped or exposed)
  double attention_s = 0;
  double moe_s = 0;        // routing, permutation, all-to-all, routed and shared experts
  double other_s = 0;      // mHC, compressor, Engram and the like
  double head_s = 0;
  double draft_s = 0;
  double host_s = 0;       // exposed host time
};

// What uneven experts mean for a step. The defaults are balanced routing over the engine's slots.
struct ExpertLoad {
  DemandSource* main = nullptr;   // asked for the demand of the tokens that a layer runs; null: balanced
  DemandSource* draft = nullptr;
  double link_taken = 0;          // share of the ranks' NVLink that other traffic takes from the exchange
};

// Texts belong to the model. No text is made here: engines sample these rows as they run.
struct OperatorCost {
  std::string_view name;
  bool of_draft = false;   // one of the draft model's experts
  std::string_view group;  // attention, moe, other, head, draft, host
  int layer_count = 1;
  double count = 0;        // rows, or whatever the shape counts
  std::string_view shape;  // without the count
  bool exact = false;      // measured points have part in the time
  double flops = 0;        // of the slowest rank, all layers
  double bytes = 0;        // HBM, or link bytes for communication
  double time_s = 0;       // all layers
  Basis basis = Basis::assumed;  // the weakest that the time rests on
  std::string_view family; // of the cost file
  std::vector<RangeExit> outside;  // where one launch leaves the range of the family

  std::string title() const;       // "draft combine"
  std::string shape_text() const;  // "512 x 4096 -> 1536, exact"
};

class StepModel {
 public:
  virtual ~StepModel() = default;
  // ranks.size() = ranks of the engine; DEP: slowest rank per side; TP: one element holds the whole engine's batch.
  virtual StepTime step(std::span<const RankBatch> ranks, const ExpertLoad& load = {}) const = 0;
  // The same step taken apart, for fidelity `flow`.
  virtual StepPhases phases(std::span<const RankBatch> /*ranks*/, const ExpertLoad& /*load*/ = {}) const { return {}; }
  // Experts' time of each sampled layer of the last step() under `load`, relative to their mean; empty when balanced.
  virtual std::vector<double> expert_layers(std::span<const RankBatch> /*ranks*/, const ExpertLoad& /*load*/) const { return {}; }
  // One row an operator; their times sum to step().total_s.
  virtual std::vector<OperatorCost> operators(std::span<const RankBatch> ranks, const ExpertLoad& load = {}) const = 0;
};

// Seconds or shares of time by basis.
struct BasisShare {
  double measured = 0, published = 0, transferred = 0, assumed = 0;
  // Adds a step's operators, scaled to `seconds` in all.
  void add(std::span<const OperatorCost> operators, double seconds);
};
double seconds_of(std::span<const OperatorCost> operators);
// What of a step that lasted `seconds` left the range of its families. Composites may take time back: shares are of what the others take.
void add_outside(RangeTally& tally, std::span<const OperatorCost> operators, double seconds);

// Everything that a step's time depends on besides the batch.
struct StepContext {
  ModelSpec model;
  GpuSpec gpu;
  CostSpec costs;
  int ranks = 1;                      // GPUs of the engine
  bool tensor_parallel = false;       // false: DEP
  std::optional<bool> expert_parallel;  // whole experts on every rank, or slices of all; not given: with DEP, not with TP
  int gpus_per_node = 4;
  int nvlink_domain = 72;             // GPUs that reach each other over NVLink
  BytesPerSecond nic_bandwidth{};     // per GPU, between domains; used when ranks > nvlink_domain
  int redundant_experts = 0;          // slots beyond the model's experts
  int draft_redundant_experts = 0;    // the same of the draft model
  int draft_tokens = 0;               // drafted per request and step
  KvFormat kv_format = KvFormat::nvfp4;
  EngramPlacement engram = EngramPlacement::host;
  EnginePath path = EnginePath::standard;
  double link_share = 1;              // of the NVLink bandwidth that is left
  HostSpec host;                      // -1 in it: the cost file's value
  bool sustained_clock = false;       // iterations with prompts run at the rate that the power cap leaves

  bool whole_experts() const { return ranks == 1 ? !tensor_parallel : expert_parallel.value_or(!tensor_parallel); }
  bool fused_experts() const;         // dispatch, experts and combine as one kernel
};
std::unique_ptr<StepModel> make_step_model(const StepContext& context);

// The same for one engine of a scenario: cost file engine.cost, or the GPU's name.
std::unique_ptr<StepModel> make_step_model(const ModelSpec& model, const RackSpec& rack, const EngineSpec& engine,
                                           const DeploymentSpec& deployment, const Catalog& catalog, double link_share = 1);

}  // namespace rackcast
