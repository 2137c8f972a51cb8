#include "sim/spec/model.hpp"

#include <algorithm>

#include "sim/base/error.hpp"

namespace rackcast {

namespace {

constexpr std::string_view attention_form_names[] = {"latent", "mla", "grouped"};
constexpr std::string_view attends_names[] = {"window", "selected", "all"};
constexpr std::string_view index_role_names[] = {"none", "full", "candidates"};
constexpr std::string_view ffn_kind_names[] = {"moe", "dense"};
constexpr std::string_view prefill_rows_names[] = {"all", "tail"};
constexpr std::string_view weight_type_names[] = {"bf16", "fp8", "fp4", "nvfp4", "int4"};
constexpr std::string_view draft_kind_names[] = {"dspark", "mtp"};

}  // namespace

void fields(Visitor& v, AttentionSpec& a) {
  v.choice("form", a.form, attention_form_names, "latent (one shared key = value row), mla, or grouped (GQA)").required();
  v.field("heads", a.heads, "query heads").require(a.heads > 0, "must be > 0").required();
  v.field("kv_heads", a.kv_heads, "key and value heads; grouped only").require(a.kv_heads > 0, "must be > 0");
  v.field("head_dim", a.head_dim, "width of a head; mla: of its part without rope")
      .require(a.head_dim > 0, "must be > 0")
      .required();
  v.field("value_dim", a.value_dim, "width of a value head; mla only")
      .require(a.form != AttentionForm::mla || a.value_dim > 0, "mla needs it");
  v.field("rope_dim", a.rope_dim, "mla: rope part of a key, beside head_dim").require(a.rope_dim >= 0, "must be >= 0");
  v.field("q_rank", a.q_rank, "rank of the low-rank query; 0: none").require(a.q_rank >= 0, "must be >= 0");
  v.field("kv_rank", a.kv_rank, "mla: width of the stored latent")
      .require(a.form != AttentionForm::mla || a.kv_rank > 0, "mla needs it");
  v.field("output_groups", a.output_groups, "latent: groups of the low-rank output; 0: one dense projection")
      .require(a.output_groups >= 0, "must be >= 0");
  v.field("output_rank", a.output_rank, "rank of each output group")
      .require((a.output_groups > 0) == (a.output_rank > 0), "goes together with output_groups");
  v.field("output_nvfp4", a.output_nvfp4, "mla, grouped: the output projection is NVFP4, whatever the other projections are");
  v.field("window", a.window, "sliding window in tokens; 0: none").require(a.window >= 0, "must be >= 0");
}

void fields(Visitor& v, IndexerSpec& i) {
  v.field("heads", i.heads, "index query heads; 0: the model has no indexer").require(i.heads >= 0, "must be >= 0");
  v.field("head_dim", i.head_dim, "width of an index key").require(i.heads == 0 || i.head_dim > 0, "must be > 0");
  v.field("selected", i.selected, "rows that a query attends (top-k)")
      .require(i.heads == 0 || i.selected > 0, "must be > 0");
  v.field("candidates", i.candidates, "rows that a layer with index: candidates scores")
      .require(i.candidates >= 0, "must be >= 0");
  v.choice("query_weights", i.query_weights, weight_type_names, "weights of the index query projection");
}

void fields(Visitor& v, LayerGroup& g) {
  v.field("name", g.name, "how outputs call these layers").required();
  v.field("count", g.count, "layers of this kind").require(g.count > 0, "must be > 0").required();
  v.choice("attends", g.attends, attends_names, "window rows; window and selected rows; or all rows");
  v.field("compress_ratio", g.compress_ratio, "context tokens per stored row").require(g.compress_ratio > 0, "must be > 0");
  v.field("writes_kv", g.writes_kv, "stores rows of its own; false: reads another layer's");
  v.choice("index", g.index, index_role_names, "what it scores to select rows");
  v.field("index_keys", g.index_keys, "stores an index key with every row");
  v.field("compressor_width", g.compressor_width, "columns of the compressor projection; 0: none")
      .require(g.compressor_width >= 0, "must be >= 0");
  v.field("index_key_input", g.index_key_input, "input width of the index key projection; 0: none")
      .require(g.index_key_input >= 0, "must be >= 0");
  v.field("index_key_width", g.index_key_width, "output width of the index key projection")
      .require((g.index_key_input > 0) == (g.index_key_width > 0), "goes together with index_key_input");
  v.field("compressor_state", g.compressor_state, "kept per request and layer")
      .require(g.compressor_state >= Bytes{}, "must be >= 0");
  v.choice("ffn", g.ffn, ffn_kind_names, "moe or dense");
  v.choice("prefill_rows", g.prefill_rows, prefill_rows_names,
           "all: a prefill runs this layer on every token; tail: on the last rows of a chunk (key `tail`)");
  v.field("engram_layers", g.engram_layers, "how many of these layers look up Engram rows")
      .require(g.engram_layers >= 0 && g.engram_layers <= g.count, "must be between 0 and count");
}

void fields(Visitor& v, ExpertsSpec& e) {
  v.field("count", e.count, "routed experts of a layer; 0: none").require(e.count >= 0, "must be >= 0");
  v.field("shared", e.shared, "shared experts of a layer").require(e.shared >= 0, "must be >= 0");
  v.field("top_k", e.top_k, "routed experts of a token")
      .require(e.count == 0 || (e.top_k > 0 && e.top_k <= e.count), "must be between 1 and count");
  v.field("intermediate", e.intermediate, "inner width of one expert")
      .require(e.count == 0 || e.intermediate > 0, "must be > 0");
  v.field("dense_intermediate", e.dense_intermediate, "inner width of layers with ffn: dense")
      .require(e.dense_intermediate >= 0, "must be >= 0");
  v.choice("weights", e.weights, weight_type_names, "type of the routed experts' weights");
  v.field("fused", e.fused, "dispatch, experts and combine run as one kernel on GPUs that have it");
}

void fields(Visitor& v, KvFormatSpec& k) {
  v.field("name", k.name, "of the layout").required();
  v.field("row", k.row, "one stored row of one layer").require(k.row > Bytes{}, "must be > 0").required();
  v.field("window_row", k.window_row, "one row of the sliding window").require(k.window_row >= Bytes{}, "must be >= 0");
  v.field("index_key", k.index_key, "one index key").require(k.index_key >= Bytes{}, "must be >= 0");
}

void fields(Visitor& v, EngramSpec& e) {
  v.field("rows_per_token", e.rows_per_token, "rows gathered per token and Engram layer")
      .require(e.rows_per_token > 0, "must be > 0")
      .required();
  v.field("row", e.row, "one row of a table").require(e.row > Bytes{}, "must be > 0").required();
  v.field("tables", e.tables, "all tables together").require(e.tables > Bytes{}, "must be > 0").required();
  v.field("projection_input", e.projection_input, "input width of the projection behind the lookup")
      .require(e.projection_input > 0, "must be > 0")
      .required();
  v.field("projection_output", e.projection_output, "its output width")
      .require(e.projection_output > 0, "must be > 0")
      .required();
}

void fields(Visitor& v, DraftSpec& d) {
  v.choice("kind", d.kind, draft_kind_names, "dspark (a block in one pass) or mtp (one pass a token)");
  v.field("max_tokens", d.max_tokens, "largest number of tokens drafted per step")
      .require(d.max_tokens > 0, "must be > 0")
      .required();
  v.field("stages", d.stages, "draft layers").require(d.stages > 0, "must be > 0");
  v.field("inputs", d.inputs, "hidden states joined by the draft's input projection").require(d.inputs > 0, "must be > 0");
  v.field("experts", d.experts, "routed experts of a draft layer; 0: a dense draft").require(d.experts >= 0, "must be >= 0");
  v.field("top_k", d.top_k, "routed experts of a drafted token")
      .require(d.top_k >= 0 && d.top_k <= d.experts, "must be between 0 and experts");
  v.field("markov_rank", d.markov_rank, "dspark: width of the sequential bias; 0: none")
      .require(d.markov_rank >= 0, "must be >= 0");
}

void fields(Visitor& v, ModelSpec& m) {
  v.field("name", m.name, "of the model").required();
  v.field("source", m.source, "where the shapes come from, with date");
  v.field("hidden", m.hidden, "width of the residual").require(m.hidden > 0, "must be > 0").required();
  v.field("vocabulary", m.vocabulary, "rows of the embedding and the head").require(m.vocabulary > 0, "must be > 0").required();
  v.field("max_context", m.max_context, "longest prompt and output together")
      .require(m.max_context.count > 0, "must be > 0")
      .required();
  v.field("residual_streams", m.residual_streams, "streams of the residual (mHC); 1: none")
      .require(m.residual_streams > 0, "must be > 0");
  v.field("tail", m.tail, "rows of a prefill chunk that layers with prefill_rows: tail compute")
      .require(m.tail.count > 0, "must be > 0");
  v.choice("dense_weights", m.dense_weights, weight_type_names, "type of projections and shared experts");
  v.choice("head_weights", m.head_weights, weight_type_names, "type of embedding and head");
  v.group("attention", m.attention, "shapes that all layers share").required();
  v.group("indexer", m.indexer, "how rows are selected");
  v.group("experts", m.experts, "the feed-forward side");
  v.list("layers", m.layers, "layers by kind").require(!m.layers.empty(), "needs at least one entry").required();
  v.list("kv_formats", m.kv_formats, "first: kv_cache format nvfp4 of a deployment; second: fp8_layout")
      .require(!m.kv_formats.empty() && m.kv_formats.size() <= 2, "needs one or two entries")
      .required();
  v.optional_group("engram", m.engram, "n-gram tables");
  v.optional_group("draft", m.draft, "the draft model for speculation");
  v.field("activation_per_token", m.activation_per_token, "peak working set per token of a batch; 0: derived from shapes")
      .require(m.activation_per_token >= Bytes{}, "must be >= 0");
}

int ModelSpec::layer_count() const {
  int count = 0;
  for (const LayerGroup& group : layers) count += group.count;
  return count;
}

const KvFormatSpec& ModelSpec::kv_format(KvFormat format) const {
  RACKCAST_CHECK(!kv_formats.empty(), "a model without KV formats");
  return kv_formats[std::min(static_cast<std::size_t>(format), kv_formats.size() - 1)];
}

double ModelSpec::kv_bytes_per_token(KvFormat format) const {
  const KvFormatSpec& rows = kv_format(format);
  double bytes = 0;
  for (const LayerGroup& group : layers) {
    if (!group.writes_kv || group.attends == Attends::window) continue;
    const double row = rows.row.value() + (group.index_keys ? rows.index_key.value() : 0);
    bytes += group.count * row / group.compress_ratio;
  }
  return bytes;
}

double ModelSpec::kv_fixed_bytes(KvFormat format, bool with_draft) const {
  const double window = attention.window * kv_format(format).window_row.value();
  double bytes = 0;
  for (const LayerGroup& group : layers) bytes += group.count * (window + group.compressor_state.value());
  if (with_draft && draft) bytes += draft->stages * window;
  return bytes;
}

}  // namespace rackcast
