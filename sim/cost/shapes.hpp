// Every matrix of a model, written once: its shape, its type, how many layers have it, on which rows of a batch it
// works and how tensor parallelism cuts it. Weights (memory), parameter counts and GEMM operators all follow from it.
#pragma once
#include <string>
#include <vector>

#include "sim/spec/gpu.hpp"
#include "sim/spec/model.hpp"

namespace rackcast {

// Which rows of a batch a matrix multiplies. Draft rows are counted per drafting request.
enum class Rows {
  tokens,           // all tokens of the batch
  tail_tokens,      // decode tokens and the last rows of prefill chunks
  head_rows,        // decode tokens and one row a prefill chunk
  decode_tokens,
  prefill_context,  // every context token of a prefill (mla expands the latent)
  draft_requests,   // requests that draft
  draft_tokens,     // requests that draft x drafted tokens
  none,             // memory only
};

enum class Part { attention, router, shared, other, head, embedding, draft, draft_moe, dense_ffn };

enum class Cut { none, columns, rows };  // tensor parallel: whole on every rank, or n or k divided

struct Matrix {
  std::string name;
  Part part = Part::attention;
  double layers = 1;
  Rows rows = Rows::tokens;
  int k = 0, n = 0;
  int batch = 1;             // independent matrices of this shape (heads, groups); cut by heads under TP
  WeightType type = WeightType::bf16;
  Cut cut = Cut::none;
  bool stored = true;        // false: another entry stores the same weights
  double passes = 1;         // times that one step multiplies with it (mtp drafts token by token)
};

std::vector<Matrix> matrices(const ModelSpec& model, int drafted_tokens);

double bytes_per_weight(WeightType type);  // scales included
// FP4 weights become FP8 where the GPU has no FP4.
WeightType expert_weights(const ModelSpec& model, const GpuSpec& gpu);
double expert_parameters(const ModelSpec& model);  // of one routed expert

// Sums that the published tables state; routed experts, embedding and head included, Engram tables and draft apart.
struct ModelTotals {
  double parameters = 0;
  double active_decode = 0;   // parameters that one decoded token meets
  double active_prefill = 0;  // parameters that one prompt token meets
  double draft_parameters = 0;
  double engram_parameters = 0;
  double dense_bytes = 0;     // everything but routed experts, draft and Engram tables
  double routed_bytes = 0;
  double draft_bytes = 0;
};
ModelTotals model_totals(const ModelSpec& model);

int moe_layers(const ModelSpec& model, PrefillRows rows);

}  // namespace rackcast
