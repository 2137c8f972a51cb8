#include "calib/model_shapes.hpp"

#include <algorithm>
#include <set>

#include "sim/base/error.hpp"

namespace rackcast::calib {
namespace {

using kernels::Shape;

// Collects shapes of families, each once.
class Collector {
 public:
  explicit Collector(bool full) {
    tokens_ = full ? std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192} : std::vector<std::int64_t>{1, 16, 64, 256, 1024, 4096};
  }
  const std::vector<std::int64_t>& tokens() const { return tokens_; }
  void add(const char* family, const Shape& shape) {
    const kernels::Family* found = kernels::find_family(family);
    RACKCAST_CHECK(found != nullptr, std::string("no family ") + family);
    if (seen_.insert(family + (' ' + shape.key())).second) result.points.push_back({found, shape, 1});
  }
  void dense(std::int64_t k, std::int64_t n, WeightType weights, std::int64_t batch = 1) {
    if (k <= 0 || n <= 0) return;
    // fp8 weights: Hopper's 128-blocks and Blackwell's MXFP8; a GPU runs what its library has.
    const auto maths = weights == WeightType::bf16 ? std::vector<const char*>{"bf16"}
                       : weights == WeightType::fp8 ? std::vector<const char*>{"fp8_block", "mxfp8"} : std::vector<const char*>{"nvfp4"};
    for (const char* math : maths)
      for (const std::int64_t m : tokens_) {
        if (static_cast<double>(m) * static_cast<double>(n) > 1e9) continue;  // the head on thousands of rows: no engine does
        const std::int64_t rows = std::string_view(math) == "bf16" ? m : (m + 3) / 4 * 4;
        add("dense", Shape().set("m", rows).set("n", n).set("k", k).set("batch", batch).set("math", math));
      }
  }
  void lacks(const std::string& what) { result.not_covered.push_back(what); }
  ModelShapes result;

 private:
  std::vector<std::int64_t> tokens_;
  std::set<std::string> seen_;
};

void add_projections(Collector& out, const ModelSpec& model) {
  const AttentionSpec& a = model.attention;
  const std::int64_t hidden = model.hidden;
  const WeightType weights = model.dense_weights;
  switch (a.form) {
    case AttentionForm::latent:
      out.dense(hidden, a.q_rank + a.head_dim, weights);
      out.dense(a.q_rank, std::int64_t{a.heads} * a.head_dim, weights);
      if (a.output_groups > 0) {
        out.dense(std::int64_t{a.heads} * a.head_dim / a.output_groups, a.output_rank, WeightType::bf16, a.output_groups);
        out.dense(std::int64_t{a.output_groups} * a.output_rank, hidden, weights);
      } else {
        out.dense(std::int64_t{a.heads} * a.head_dim, hidden, weights);
      }
      break;
    case AttentionForm::mla:
      out.dense(hidden, a.q_rank + a.kv_rank + a.rope_dim, weights);
      out.dense(a.q_rank > 0 ? a.q_rank : hidden, std::int64_t{a.heads} * (a.head_dim + a.rope_dim), weights);
      out.dense(std::int64_t{a.heads} * a.value_dim, hidden, weights);
      break;
    case AttentionForm::grouped:
      out.dense(hidden, (std::int64_t{a.heads} + std::int64_t{2} * a.kv_heads) * a.head_dim, weights);
      out.dense(std::int64_t{a.heads} * a.head_dim, hidden, weights);
      break;
  }
  for (const LayerGroup& layer : model.layers) {
    out.dense(hidden, layer.compressor_width, WeightType::bf16);
    out.dense(layer.index_key_input, layer.index_key_width, WeightType::bf16);
    if (layer.ffn == FfnKind::dense && model.experts.dense_intermediate > 0) {
      out.dense(hidden, 2 * std::int64_t{model.experts.dense_intermediate}, weights);
      out.dense(model.experts.dense_intermediate, hidden, weights);
    }
  }
  out.dense(hidden, model.vocabulary, model.head_weights == WeightType::bf16 ? WeightType::bf16 : weights);
}

void add_core(Collector& out, const ModelSpec& model) {
  const AttentionSpec& a = model.attention;
  constexpr std::int64_t requests_most = 512;
  if (a.form == AttentionForm::grouped) return out.lacks("grouped attention: no kernel family");
  if (a.form == AttentionForm::mla) {
    if (a.kv_rank != 512 || a.rope_dim != 64) return out.lacks("latent attention of other widths than 512 + 64");
    for (const std::int64_t requests : out.tokens())
      for (const std::int64_t context : {4096, 32768})
        if (requests <= requests_most && requests * context <= 8'388'608)
          out.add("mla_attention", Shape().set("requests", requests).set("context", context).set("heads", a.heads).set("query_tokens", 1).set("lengths", "full"));
    return;
  }
  if (a.heads != 64 || a.head_dim != 512) return out.lacks("sparse attention of " + std::to_string(a.heads) + " heads x " + std::to_string(a.head_dim) + ": the kernel does 64 x 512");
  std::set<std::int64_t> selections;
  for (const LayerGroup& layer : model.layers)
    if (layer.attends != Attends::all) selections.insert(layer.attends == Attends::window ? 0 : model.indexer.selected);
  const bool short_rows = model.kv_formats.size() > 1 && model.kv_formats.front().row.value() < 400;
  for (const std::int64_t selected : selections)
    for (const std::int64_t tokens : out.tokens())
      for (const char* phase : {"decode", "prefill"})
        if ((std::string_view(phase) == "prefill") == (tokens > requests_most))
          out.add("sparse_attention", Shape().set("tokens", tokens).set("window", a.window).set("selected", selected).set("format", short_rows ? "v41" : "v4")
                                          .set("locality", "rows").set("query_tokens", 1).set("phase", phase).set("lengths", "full"));
}

void add_index(Collector& out, const ModelSpec& model) {
  const IndexerSpec& index = model.indexer;
  if (index.heads == 0) return;
  out.dense(model.attention.q_rank, std::int64_t{index.heads} * index.head_dim, index.query_weights);
  out.dense(model.hidden, index.heads, WeightType::bf16);
  if (index.head_dim != 128 || (index.heads != 32 && index.heads != 64))
    return out.lacks("index of " + std::to_string(index.heads) + " heads x " + std::to_string(index.head_dim) + ": the kernel does 32 or 64 x 128");
  const bool fp4 = !model.kv_formats.empty() && model.kv_formats.front().index_key.value() < 100;
  for (const std::int64_t tokens : out.tokens())
    for (const std::int64_t keys : {4096, 32768}) {
      if (tokens > 512 || tokens * keys > 16'777'216) continue;
      out.add("indexer", Shape().set("requests", tokens).set("query_tokens", 1).set("keys", keys).set("heads", index.heads).set("form", "dense").set("format", fp4 ? "fp4" : "fp8"));
      out.add("topk", Shape().set("rows", tokens).set("scores", keys).set("k", index.selected).set("distribution", "gaussian").set("group", 1));
    }
}

void add_experts(Collector& out, const ModelSpec& model, int ranks) {
  const ExpertsSpec& e = model.experts;
  if (e.count == 0) return;
  out.dense(model.hidden, 2 * std::int64_t{e.intermediate} * e.shared, model.dense_weights);
  out.dense(std::int64_t{e.intermediate} * e.shared, model.hidden, model.dense_weights);
  const bool widths = model.hidden % 512 == 0 && model.hidden <= 8192 && e.intermediate % 256 == 0 && e.intermediate <= 8192;
  const bool choices = e.top_k <= 8 && e.top_k != 5 && e.top_k != 7 && e.count <= 512;
  if (!choices) out.lacks("top " + std::to_string(e.top_k) + " of " + std::to_string(e.count) + " experts: not in route and permute");
  if (!widths) out.lacks("experts of " + std::to_string(model.hidden) + " x " + std::to_string(e.intermediate) + ": not in moe_gemm");
  if (e.weights == WeightType::bf16 || e.weights == WeightType::nvfp4) out.lacks("bf16 and nvfp4 expert weights: not in moe_gemm");
  for (const std::int64_t tokens : out.tokens()) {
    if (choices) {
      out.add("route", Shape().set("tokens", tokens).set("hidden", model.hidden).set("experts", e.count).set("top_k", e.top_k));
      for (const char* part : {"permute", "unpermute"})
        out.add("permute", Shape().set("part", part).set("tokens", tokens).set("hidden", model.hidden).set("experts", e.count).set("top_k", e.top_k).set("spread", "balanced").set("align", 128));
    }
    const char* weights = e.weights == WeightType::fp8 ? "fp8" : e.weights == WeightType::fp4 ? "mxfp4" : nullptr;
    if (widths && weights)
      out.add("moe_gemm", Shape().set("part", "both").set("hidden", model.hidden).set("inter", e.intermediate).set("experts", std::max(e.count / ranks, 1))
                              .set("rows", e.top_k * tokens).set("spread", "multinomial").set("weights", weights).set("layout", tokens > 512 ? "contiguous" : "masked"));
  }
}

}  // namespace

ModelShapes model_shapes(const ModelSpec& model, int expert_ranks, bool full) {
  if (expert_ranks < 1 || (model.experts.count > 0 && expert_ranks > model.experts.count))
    throw UserError("--expert-ranks " + std::to_string(expert_ranks) + ": must be 1 to " + std::to_string(std::max(model.experts.count, 1)));
  Collector out(full);
  add_projections(out, model);
  add_index(out, model);
  add_core(out, model);
  add_experts(out, model, expert_ranks);
  for (const std::int64_t tokens : out.tokens()) {
    const auto small = [&](const char* op, std::int64_t size) { out.add("small", Shape().set("op", op).set("tokens", tokens).set("size", size)); };
    if (model.attention.form == AttentionForm::latent && model.attention.head_dim == 512) small("insert", 512);
    if (model.residual_streams == 4) {
      small("mhc_pre", model.hidden);
      small("mhc_post", model.hidden);
    }
    if (tokens <= 1024) small("verify", model.vocabulary);
  }
  return out.result;
}

std::vector<PlannedPoint> order_points(std::vector<PlannedPoint> points, const std::vector<const kernels::Family*>& families, int passes,
                                       std::uint64_t seed) {
  std::erase_if(points, [&](const PlannedPoint& point) { return std::find(families.begin(), families.end(), point.family) == families.end(); });
  std::vector<PlannedPoint> all;
  for (int pass = 1; pass <= passes; ++pass) {
    shuffle_points(points, seed + static_cast<std::uint64_t>(pass));
    for (PlannedPoint point : points) {
      point.pass = pass;
      all.push_back(std::move(point));
    }
  }
  return all;
}

}  // namespace rackcast::calib
