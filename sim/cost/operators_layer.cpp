// What layers, head and draft do besides matrices: attention, index, residual streams, lookups, sampling.
#include <fmt/core.h>

#include <algorithm>

#include "sim/cost/operator_builder.hpp"

namespace rackcast {

// Normalisation, rotary embedding, quantisation and KV insert: three kernels around the attention's matrices.
void OperatorBuilder::add_small(double layers, Rows rows, Group group) {
  const AttentionSpec& a = m_.attention;
  const double heads = double(a.heads) * a.head_dim / cut_;
  Operator op;
  op.name = group == Group::draft ? "draft norm, rope, insert" : "norm, rope, insert";
  op.group = group;
  op.layers = layers;
  op.family = "small";
  op.form = read_.stream(op.family);
  op.launches = 3;
  op.gate = op.flops_of = op.bytes_of = feature_of(rows);
  op.bytes_per = 2.0 * 2 * (m_.hidden + a.q_rank + a.head_dim + 2 * heads);  // BF16, read and written
  op.shape = fmt::format("x{}", m_.hidden);
  add(std::move(op));
}

void OperatorBuilder::add_core(double layers, const AttentionPattern& pattern, Group group) {
  const AttentionSpec& a = m_.attention;
  const int number = map_.pattern(pattern);
  const double heads = double(a.heads) / cut_;
  const bool mla = a.form == AttentionForm::mla;
  const char* family = a.form == AttentionForm::latent ? "attention_latent" : mla ? "attention_mla" : "attention_grouped";
  for (const bool prefill : {false, true}) {
    if (prefill && group == Group::draft) continue;
    Operator op;
    op.name = fmt::format("{}{} attention, {}", group == Group::draft ? "draft " : "", prefill ? "prefill" : "decode",
                          pattern.attends == Attends::window ? "window"
                          : pattern.attends == Attends::selected ? "selected rows" : "all rows");
    op.group = group;
    op.layers = layers;
    op.family = fmt::format("{}_{}", family, prefill ? "prefill" : "decode");
    op.form = read_.roofline(op.family);
    op.launches = group == Group::draft ? pattern.passes : 1;
    op.gate = op.flops_of = pattern_feature(number, prefill ? prefill_pairs : decode_pairs);
    op.bytes_of = pattern_feature(number, prefill ? prefill_bytes : decode_bytes);
    op.rows_of = pattern_feature(number, prefill ? prefill_queries : decode_queries);
    op.seconds_per = read_.value_or(op.family, "row_ns", 0) * 1e-9 / cut_ *
                     (mla ? a.heads / mla_heads_of_row_ns : 1);
    // Multiply-adds of scores and values per query-key pair: absorbed mla works on the latent, a prefill on heads.
    const double width = mla && !prefill ? 2.0 * a.kv_rank + a.rope_dim
                         : mla           ? a.head_dim + a.rope_dim + a.value_dim
                                         : 2.0 * a.head_dim;
    op.flops_per = 2 * heads * width;
    op.bytes_per = 1;
    op.shape = fmt::format("pairs x {:g} heads, ratio {}", heads, pattern.ratio);
    add(std::move(op));
  }
}

void OperatorBuilder::add_index(const LayerGroup& g, Rows rows) {
  if (g.index == IndexRole::none) return;
  const IndexerSpec& x = m_.indexer;
  const int number = map_.index_pattern({g.index, g.compress_ratio, rows});
  Operator score;
  score.name = g.index == IndexRole::full ? "index score" : "index score, candidates";
  score.layers = g.count;
  score.family = "indexer";
  score.form = read_.roofline(score.family);
  score.gate = score.flops_of = index_feature(number, score_pairs);
  score.flops_per = 2.0 * x.heads * x.head_dim;
  score.bytes_of = index_feature(number, score_bytes);
  score.bytes_per = 1;
  score.shape = fmt::format("pairs x {} heads x {}, ratio {}", x.heads, x.head_dim, g.compress_ratio);
  add(score);
  Operator select;
  select.name = g.index == IndexRole::full ? "top-k" : "top-k of candidates";
  select.layers = g.count;
  select.family = "topk";
  select.form = read_.stream(select.family);
  select.gate = select.flops_of = index_feature(number, score_pairs);
  select.bytes_of = index_feature(number, logit_bytes);
  select.bytes_per = 2;  // logits written and read
  select.shape = fmt::format("{} of context/{}", x.selected, g.compress_ratio);
  add(select);
}

// mHC: two sites a layer, each reads and writes the streams about three times in all; its mixing matrix is in it.
void OperatorBuilder::add_streams(double layers, Rows rows, Group group) {
  const int s = m_.residual_streams;
  if (s <= 1) return;
  Operator op;
  op.name = group == Group::draft ? "draft mhc" : "mhc";
  op.group = group;
  op.layers = 2 * layers;
  op.family = "mhc";
  op.form = read_.stream(op.family);
  op.gate = op.flops_of = op.bytes_of = feature_of(rows);
  const double mix = double(s) * m_.hidden * (s * s + 2 * s);
  op.flops_per = 2 * mix;
  op.form.flops_per_s = 1e30;  // memory-bound: its flops are listed, its bytes are timed
  op.bytes_per = 3.0 * s * m_.hidden * 2;
  op.bytes_fixed = 4 * mix;
  op.shape = fmt::format("x{}x{}", s, m_.hidden);
  add(std::move(op));
}

void OperatorBuilder::add_engram(const LayerGroup& g, Rows rows) {
  if (!m_.engram || g.engram_layers == 0) return;
  static constexpr const char* families[] = {"engram_hbm", "engram_peer", "engram_host"};
  Operator op;
  op.name = "engram lookup";
  op.group = Group::other;
  op.layers = g.engram_layers;
  op.family = families[static_cast<int>(c_.engram)];
  op.form = read_.stream(op.family);
  op.gate = op.flops_of = op.bytes_of = feature_of(rows);
  op.bytes_per = m_.engram->rows_per_token * m_.engram->row.value();
  op.shape = fmt::format("x{} rows", m_.engram->rows_per_token);
  add(std::move(op));
}

void OperatorBuilder::add_head() {
  Operator sample;
  sample.name = "sampling";
  sample.group = Group::head;
  sample.family = "small";
  sample.form = read_.stream(sample.family);
  sample.launches = 3;
  sample.gate = sample.flops_of = sample.bytes_of = feature_of(Rows::head_rows);
  sample.bytes_per = 2.0 * 4 * m_.vocabulary / cut_;  // logits written and read
  sample.shape = fmt::format("x{}", m_.vocabulary / cut_);
  add(std::move(sample));
}

void OperatorBuilder::add_draft() {
  const DraftSpec& d = *m_.draft;
  const bool block = d.kind == DraftKind::dspark;
  const Rows rows = block ? Rows::draft_tokens : Rows::draft_requests;
  const double passes = block ? 1 : c_.draft_tokens;
  const Attends attends = m_.attention.window > 0 ? Attends::window : Attends::all;
  add_small(d.stages * passes, rows, Group::draft);
  add_core(d.stages, {attends, 1, rows, passes}, Group::draft);
  add_streams(d.stages * passes, rows, Group::draft);
  add_all_reduce("draft all-reduce", 2 * d.stages * passes, rows, Group::draft);
  Operator sample;
  sample.name = "draft sampling";
  sample.group = Group::draft;
  sample.family = "small";
  sample.form = read_.stream(sample.family);
  sample.launches = 2;
  sample.layers = c_.draft_tokens;
  sample.gate = sample.flops_of = sample.bytes_of = feature_of(Rows::draft_requests);
  sample.bytes_per = 2.0 * 4 * m_.vocabulary / cut_;
  sample.shape = fmt::format("x{}", m_.vocabulary / cut_);
  add(std::move(sample));
}

}  // namespace rackcast
