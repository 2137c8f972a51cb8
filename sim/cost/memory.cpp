#include "sim/cost/memory.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/cost/shapes.hpp"
#include "sim/policy/eplb.hpp"

namespace rackcast {

std::string padding_note(int experts, int redundant, int ranks) {
  const int slots = slots_per_rank(experts, ranks, redundant), padded = slots * ranks - experts;
  if (experts == 0 || padded <= redundant) return {};
  return fmt::format("{} experts and {} redundant ones do not divide by {} ranks: {} redundant ones fill {} slots a rank", experts, redundant,
                     ranks, padded, slots);
}

namespace {

using namespace literals;

// CUDA context, graphs, communication buffers and the allocator's slack; assumed, close to what vLLM reports.
constexpr Bytes runtime_reserve = 4_GiB;

struct Shape {
  const ModelSpec& model;
  const RackSpec& rack;
  const EngineSpec& engine;
  const DeploymentSpec& deployment;
  bool tensor_parallel, whole_experts;
  int ranks;
};

double share(const Matrix& m, const Shape& s) {
  return s.tensor_parallel && m.cut != Cut::none ? 1.0 / s.ranks : 1.0;
}

int slots_of(const Shape& s) {
  return slots_per_rank(s.model.experts.count, s.ranks, s.deployment.eplb.redundant_experts);
}

void weight_lines(const Shape& s, bool with_draft, MemoryPlan& plan) {
  double dense = 0, ends = 0, draft = 0;
  for (const Matrix& m : matrices(s.model, std::max(1, s.deployment.speculation.draft_tokens))) {
    if (!m.stored) continue;
    const double bytes = m.layers * m.batch * m.k * m.n * bytes_per_weight(m.type) * share(m, s);
    if (m.part == Part::head || m.part == Part::embedding) ends += bytes;
    else if (m.part == Part::draft || m.part == Part::draft_moe) draft += bytes;
    else dense += bytes;
  }
  const WeightType type = expert_weights(s.model, s.rack.gpu);
  const double expert = expert_parameters(s.model) * bytes_per_weight(type);
  if (s.model.experts.count > 0) {
    const int layers = moe_layers(s.model, PrefillRows::all) + moe_layers(s.model, PrefillRows::tail);
    const double per_layer = s.whole_experts ? slots_of(s) : double(s.model.experts.count) / s.ranks;
    plan.lines.push_back({"routed experts", layers * per_layer * expert,
                          fmt::format("{} layers x {:g} experts x {:.2f} MB", layers, per_layer, expert / 1e6)});
    plan.expert_slots_per_rank = s.whole_experts ? slots_of(s) : s.model.experts.count;
    if (std::string note = padding_note(s.model.experts.count, s.deployment.eplb.redundant_experts, s.ranks); s.whole_experts && !note.empty())
      plan.notes.push_back(std::move(note));
    const EplbSpec& eplb = s.deployment.eplb;
    if (!s.whole_experts && (eplb.policy != EplbPolicy::none || eplb.redundant_experts > 0))
      plan.notes.push_back("every rank has a slice of every expert: deployment.eplb has nothing to place");
    if (type != s.model.experts.weights)
      plan.notes.push_back(fmt::format("{} has no FP4: routed experts are kept as FP8", s.rack.gpu.name));
  }
  plan.lines.push_back({"attention, shared experts and other dense weights", dense,
                        s.tensor_parallel ? fmt::format("cut over {} ranks where possible", s.ranks) : "a copy per rank"});
  plan.lines.push_back({"embedding and head", ends, s.tensor_parallel ? "cut by vocabulary" : "a copy per rank"});
  if (with_draft && s.model.draft) {
    const DraftSpec& d = *s.model.draft;
    const int slots = slots_per_rank(d.experts, s.ranks, s.whole_experts ? s.deployment.eplb.draft_redundant_experts : 0);
    draft += d.stages * double(slots) * expert;
    plan.lines.push_back({"draft model", draft, fmt::format("{} layers, {} experts over {} ranks", d.stages, d.experts, s.ranks)});
  }
}

void engram_line(const Shape& s, MemoryPlan& plan) {
  if (!s.model.engram) return;
  const double tables = s.model.engram->tables.value();
  switch (s.deployment.engram) {
    case EngramPlacement::hbm:
      plan.lines.push_back({"Engram tables (hbm)", tables / s.ranks, fmt::format("{:.1f} GB over the engine's {} ranks", tables / 1e9, s.ranks)});
      break;
    case EngramPlacement::peer: {
      const int domain = std::max(s.ranks, s.rack.nvlink_domain);
      plan.lines.push_back({"Engram tables (peer)", tables / domain, fmt::format("{:.1f} GB over the NVLink domain's {} GPUs", tables / 1e9, domain)});
      break;
    }
    case EngramPlacement::host:
      plan.notes.push_back(fmt::format("Engram tables ({:.1f} GB) are in host memory, once a node", tables / 1e9));
      break;
  }
}

// Working set per token: three copies of the residual streams, queries and attention output, and the expert rows.
double activation_per_token(const ModelSpec& m, int cut) {
  if (m.activation_per_token > Bytes{}) return m.activation_per_token.value();
  const double residual = 3.0 * m.residual_streams * m.hidden * 2;
  const double attention = 2.0 * m.attention.heads * m.attention.head_dim * 2 * 2 / cut;
  const double experts = m.experts.top_k * (3.0 * m.hidden + 2.0 * m.experts.intermediate);
  return residual + attention + experts;
}

void activation_lines(const Shape& s, EngineRole role, MemoryPlan& plan) {
  const double verified = 1 + s.deployment.speculation.draft_tokens;
  const double decode = role == EngineRole::prefill ? 0 : s.engine.max_requests_per_rank * verified;
  const double prefill = role == EngineRole::decode ? 0 : static_cast<double>(s.engine.max_batched_tokens.count);
  const double per_token = activation_per_token(s.model, s.tensor_parallel ? s.ranks : 1);
  plan.lines.push_back({"activations", (decode + prefill) * per_token,
                        fmt::format("{:.0f} tokens x {:.0f} KB", decode + prefill, per_token / 1e3)});
  if (!s.tensor_parallel && !s.whole_experts && s.model.experts.count > 0 && s.ranks > 1) {
    const ExpertsSpec& e = s.model.experts;
    const double gathered = (decode + prefill) * (s.ranks - 1), row = 2.0 * s.model.hidden + e.top_k * (3.0 * s.model.hidden + 2.0 * e.intermediate / s.ranks);
    plan.lines.push_back({"tokens of the other ranks", gathered * row, fmt::format("{:.0f} tokens x {:.0f} KB, gathered for the slices of experts", gathered, row / 1e3)});
  }
  const double rows = role == EngineRole::prefill ? 64 : decode;
  const double width = double(s.model.vocabulary) / (s.tensor_parallel ? s.ranks : 1);
  plan.lines.push_back({"logits", rows * width * 4, fmt::format("{:.0f} rows x {:.0f} x 4 B", rows, width)});
  plan.lines.push_back({"runtime reserve", runtime_reserve.value(), "CUDA context, graphs, communication buffers (assumed)"});
}

}  // namespace

MemoryPlan plan_memory(const ModelSpec& model, const RackSpec& rack, const EngineSpec& engine, EngineRole role,
                       const DeploymentSpec& deployment, double minimum_context) {
  const Shape s{model, rack, engine, deployment, engine.tp > 0, engine.expert_parallel(), engine.ranks()};
  RACKCAST_CHECK(s.ranks > 0, "an engine without ranks");
  const bool with_draft = role != EngineRole::prefill && deployment.speculation.draft_tokens > 0;
  MemoryPlan plan;
  weight_lines(s, with_draft, plan);
  engram_line(s, plan);
  activation_lines(s, role, plan);

  plan.memory_bytes = rack.gpu.memory.value();
  for (const MemoryLine& line : plan.lines) plan.used_bytes += line.bytes;
  const double left = plan.memory_bytes - plan.used_bytes;
  const KvCacheSpec& kv = deployment.kv_cache;
  plan.kv_pool_bytes = std::max(0.0, kv.gpu_share > 0 ? kv.gpu_share * plan.memory_bytes - plan.used_bytes : left * kv.memory_fraction);
  // A latent row is whole on every rank of a TP engine; heads of keys and values are divided.
  const bool divided = s.tensor_parallel && model.attention.form == AttentionForm::grouped;
  const double parts = divided ? std::min(s.ranks, model.attention.kv_heads) : 1;
  plan.kv_bytes_per_token = model.kv_bytes_per_token(deployment.kv_cache.format) / parts;
  plan.kv_fixed_bytes = model.kv_fixed_bytes(deployment.kv_cache.format, with_draft) / parts;
  plan.kv_capacity_tokens = plan.kv_bytes_per_token > 0 ? plan.kv_pool_bytes / plan.kv_bytes_per_token : 0;
  const double needed = plan.kv_fixed_bytes + minimum_context * plan.kv_bytes_per_token;
  plan.fits = left > 0 && plan.kv_pool_bytes >= needed && plan.kv_pool_bytes > 0;
  return plan;
}

std::string MemoryPlan::table() const {
  std::string text;
  for (const MemoryLine& line : lines)
    text += fmt::format("  {:<50} {:>9.2f} GB   {}\n", line.what, line.bytes / 1e9, line.how);
  text += fmt::format("  {:<50} {:>9.2f} GB\n", "sum", used_bytes / 1e9);
  text += fmt::format("  {:<50} {:>9.2f} GB\n", "memory of the GPU", memory_bytes / 1e9);
  text += fmt::format("  {:<50} {:>9.2f} GB   {:.0f} B a token + {:.2f} MB a request: {:.2f} M tokens\n", "KV pool",
                      kv_pool_bytes / 1e9, kv_bytes_per_token, kv_fixed_bytes / 1e6, kv_capacity_tokens / 1e6);
  for (const std::string& note : notes) text += "  note: " + note + "\n";
  return text;
}

void require_fit(const MemoryPlan& plan, const std::string& who) {
  if (plan.fits) return;
  throw UserError(who + " does not fit; per GPU:\n" + plan.table() +
                  "  use more ranks, fewer max_requests_per_rank or max_batched_tokens, or another KV format or Engram placement");
}

}  // namespace rackcast
