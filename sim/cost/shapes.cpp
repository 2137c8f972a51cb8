#include "sim/cost/shapes.hpp"

namespace rackcast {

namespace {

class MatrixList {
 public:
  explicit MatrixList(const ModelSpec& model) : m_(model) {}

  void attention(double layers, Rows rows, Part part, double passes = 1) {
    const AttentionSpec& a = m_.attention;
    const WeightType type = m_.dense_weights;
    auto add = [&](const char* name, Rows on, int k, int n, int batch, Cut cut, bool stored = true) {
      list_.push_back({name, part, layers, on, k, n, batch, type, cut, stored, passes});
    };
    switch (a.form) {
      case AttentionForm::latent:
        add("q down + kv", rows, m_.hidden, a.q_rank + a.head_dim, 1, Cut::none);
        add("q up", rows, a.q_rank, a.heads * a.head_dim, 1, Cut::columns);
        break;
      case AttentionForm::mla:
        add("q down + kv", rows, m_.hidden, a.q_rank + a.kv_rank + a.rope_dim, 1, Cut::none);
        add("q up", rows, a.q_rank, a.heads * (a.head_dim + a.rope_dim), 1, Cut::columns);
        mla_expansion(layers, rows, part, passes);
        break;
      case AttentionForm::grouped:
        add("qkv", rows, m_.hidden, (a.heads + 2 * a.kv_heads) * a.head_dim, 1, Cut::columns);
        break;
    }
    const int width = a.heads * (a.form == AttentionForm::mla ? a.value_dim : a.head_dim);
    if (a.output_groups > 0) {
      add("output down", rows, width / a.output_groups, a.output_rank, a.output_groups, Cut::columns);
      add("output up", rows, a.output_groups * a.output_rank, m_.hidden, 1, Cut::rows);
    } else {
      add("output", rows, width, m_.hidden, 1, Cut::rows);
      if (a.output_nvfp4 && part != Part::draft) list_.back().type = WeightType::nvfp4;
    }
  }

  void index(const LayerGroup& g, Rows rows) {
    const IndexerSpec& x = m_.indexer;
    if (g.compressor_width > 0) matrix("compressor", Part::other, g.count, Rows::tokens, m_.hidden, g.compressor_width);
    if (g.index_key_width > 0)
      matrix("index key", Part::attention, g.count, Rows::tokens, g.index_key_input, g.index_key_width);
    if (g.index == IndexRole::none) return;
    const int input = m_.attention.q_rank > 0 ? m_.attention.q_rank : m_.hidden;
    list_.push_back({"index query", Part::attention, double(g.count), rows, input, x.heads * x.head_dim, 1,
                     x.query_weights, Cut::none, true, 1});
    matrix("index head weights", Part::attention, g.count, rows, m_.hidden, x.heads);
  }

  void ffn(double layers, Rows rows, FfnKind kind) {
    const ExpertsSpec& e = m_.experts;
    if (kind == FfnKind::dense) {
      gate_up_down("dense ffn", Part::dense_ffn, layers, rows, e.dense_intermediate);
      return;
    }
    matrix("router", Part::router, layers, rows, m_.hidden, e.count);
    if (e.shared > 0) gate_up_down("shared expert", Part::shared, layers, rows, e.shared * e.intermediate);
  }

  void streams(double layers, Rows rows) {  // the mixing weights of mHC, two sites a layer, FP32 counted as two BF16
    const int s = m_.residual_streams;
    if (s > 1) matrix("mhc mix", Part::other, 2 * layers, rows, s * m_.hidden, s * s + 2 * s);
  }

  void engram(double layers, Rows rows) {
    if (!m_.engram || layers <= 0) return;
    list_.push_back({"engram projection", Part::other, layers, rows, m_.engram->projection_input,
                     m_.engram->projection_output, 1, m_.dense_weights, Cut::none, true, 1});
  }

  void ends() {
    list_.push_back({"embedding", Part::embedding, 1, Rows::none, m_.hidden, m_.vocabulary, 1, m_.head_weights,
                     Cut::columns, true, 1});
    list_.push_back({"head", Part::head, 1, Rows::head_rows, m_.hidden, m_.vocabulary, 1, m_.head_weights, Cut::columns,
                     true, 1});
  }

  // dspark: one pass over a block; mtp: as many passes as drafted tokens, each on one row a request.
  void draft(int drafted) {
    if (!m_.draft) return;
    const DraftSpec& d = *m_.draft;
    const bool block = d.kind == DraftKind::dspark;
    const Rows rows = block ? Rows::draft_tokens : Rows::draft_requests;
    const double passes = block ? 1 : drafted;
    list_.push_back({"draft input", Part::draft, 1, block ? Rows::decode_tokens : Rows::draft_requests,
                     d.inputs * m_.hidden, m_.hidden, 1, m_.dense_weights, Cut::none, true, passes});
    attention(d.stages, rows, Part::draft, passes);
    if (block) {  // the verified tokens' rows enter the draft's window
      Matrix insert = {"draft kv insert", Part::draft, double(d.stages), Rows::decode_tokens, m_.hidden,
                       m_.attention.q_rank + m_.attention.head_dim, 1, m_.dense_weights, Cut::none, false, 1};
      list_.push_back(insert);
    }
    if (d.experts > 0) {
      list_.push_back({"draft router", Part::draft_moe, double(d.stages), rows, m_.hidden, d.experts, 1, WeightType::bf16,
                       Cut::none, true, passes});
      draft_ffn("draft shared expert", d.stages, rows, m_.experts.shared * m_.experts.intermediate, passes);
    } else {
      draft_ffn("draft ffn", d.stages, rows, m_.experts.dense_intermediate, passes);
    }
    list_.push_back({"draft head", Part::draft, 1, rows, m_.hidden, m_.vocabulary, 1, m_.head_weights, Cut::columns, false,
                     passes});
    if (d.markov_rank > 0) {  // one sequential product a drafted token; its table and the factor into it
      list_.push_back({"draft markov bias", Part::draft, 1, Rows::draft_requests, d.markov_rank, m_.vocabulary, 1,
                       WeightType::bf16, Cut::columns, true, double(drafted)});
      list_.push_back({"draft markov table", Part::draft, 1, Rows::none, d.markov_rank, m_.vocabulary, 1, WeightType::bf16,
                       Cut::columns, true, 1});
    }
  }

  std::vector<Matrix> take() { return std::move(list_); }

 private:
  void matrix(const char* name, Part part, double layers, Rows rows, int k, int n) {
    list_.push_back({name, part, layers, rows, k, n, 1, WeightType::bf16, Cut::none, true, 1});
  }
  void gate_up_down(const char* name, Part part, double layers, Rows rows, int inner) {
    // NVFP4 builds quantize every feed-forward weight of the model proper; drafts stay as they were.
    const bool quantized = m_.experts.weights == WeightType::nvfp4 && part != Part::draft;
    const WeightType type = quantized ? WeightType::nvfp4 : m_.dense_weights;
    list_.push_back({std::string(name) + " gate up", part, layers, rows, m_.hidden, 2 * inner, 1, type, Cut::columns, true, 1});
    list_.push_back({std::string(name) + " down", part, layers, rows, inner, m_.hidden, 1, type, Cut::rows, true, 1});
  }
  void draft_ffn(const char* name, double layers, Rows rows, int inner, double passes) {
    gate_up_down(name, Part::draft, layers, rows, inner);
    list_[list_.size() - 2].passes = list_[list_.size() - 1].passes = passes;
  }
  // Decode multiplies the query and the output by the latent's up-projections; a prefill expands its context instead.
  void mla_expansion(double layers, Rows rows, Part part, double passes) {
    const AttentionSpec& a = m_.attention;
    const Rows absorbed = part == Part::draft ? rows : Rows::decode_tokens;
    list_.push_back({"absorb key", part, layers, absorbed, a.head_dim, a.kv_rank, a.heads, m_.dense_weights, Cut::columns,
                     true, passes});
    list_.push_back({"absorb value", part, layers, absorbed, a.kv_rank, a.value_dim, a.heads, m_.dense_weights,
                     Cut::columns, true, passes});
    if (part == Part::draft) return;
    list_.push_back({"expand latent", part, layers, Rows::prefill_context, a.kv_rank, a.heads * (a.head_dim + a.value_dim),
                     1, m_.dense_weights, Cut::columns, false, 1});
  }

  const ModelSpec& m_;
  std::vector<Matrix> list_;
};

}  // namespace

std::vector<Matrix> matrices(const ModelSpec& model, int drafted) {
  MatrixList list(model);
  for (const LayerGroup& g : model.layers) {
    const Rows rows = g.prefill_rows == PrefillRows::all ? Rows::tokens : Rows::tail_tokens;
    list.attention(g.count, rows, Part::attention);
    list.index(g, rows);
    list.streams(g.count, rows);
    list.engram(g.engram_layers, rows);
    list.ffn(g.count, rows, g.ffn);
  }
  list.ends();
  list.draft(drafted);
  return list.take();
}

double bytes_per_weight(WeightType type) {
  switch (type) {
    case WeightType::bf16: return 2;
    case WeightType::fp8: return 1;
    case WeightType::fp4: return 0.5 + 1.0 / 32;
    case WeightType::nvfp4: return 0.5 + 1.0 / 16;
    case WeightType::int4: return 0.5 + 2.0 / 32;
  }
  return 0;
}

WeightType expert_weights(const ModelSpec& model, const GpuSpec& gpu) {
  const bool lacks_fp4 = gpu.fp4 <= FlopsPerSecond{};
  const bool is_fp4 = model.experts.weights == WeightType::fp4 || model.experts.weights == WeightType::nvfp4;
  return is_fp4 && lacks_fp4 ? WeightType::fp8 : model.experts.weights;
}

double expert_parameters(const ModelSpec& model) { return 3.0 * model.hidden * model.experts.intermediate; }

int moe_layers(const ModelSpec& model, PrefillRows rows) {
  int count = 0;
  for (const LayerGroup& g : model.layers)
    if (g.ffn == FfnKind::moe && g.prefill_rows == rows && model.experts.count > 0) count += g.count;
  return count;
}

ModelTotals model_totals(const ModelSpec& model) {
  ModelTotals totals;
  const double expert = expert_parameters(model);
  for (const Matrix& m : matrices(model, 1)) {
    if (!m.stored) continue;
    const double parameters = m.layers * m.batch * m.k * m.n;
    if (m.part == Part::draft || m.part == Part::draft_moe) {
      totals.draft_parameters += parameters;
      totals.draft_bytes += parameters * bytes_per_weight(m.type);
      continue;
    }
    totals.parameters += parameters;
    totals.dense_bytes += parameters * bytes_per_weight(m.type);
    if (m.part == Part::embedding) continue;
    totals.active_decode += parameters;
    if (m.rows == Rows::tokens || m.rows == Rows::decode_tokens) totals.active_prefill += parameters;
  }
  const double all_rows = moe_layers(model, PrefillRows::all), tail = moe_layers(model, PrefillRows::tail);
  const double per_weight = bytes_per_weight(model.experts.weights);
  totals.parameters += (all_rows + tail) * model.experts.count * expert;
  totals.routed_bytes = (all_rows + tail) * model.experts.count * expert * per_weight;
  totals.active_decode += (all_rows + tail) * model.experts.top_k * expert;
  totals.active_prefill += all_rows * model.experts.top_k * expert;
  if (model.draft) {
    const double routed = model.draft->stages * model.draft->experts * expert;
    totals.draft_parameters += routed;
    totals.draft_bytes += routed * per_weight;
  }
  if (model.engram) totals.engram_parameters = model.engram->tables.value() / (1 + 1.0 / 32);
  return totals;
}

}  // namespace rackcast
