#include "sim/cost/operators.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/cost/operator_builder.hpp"

namespace rackcast {

const std::string_view group_names[6] = {"attention", "moe", "other", "head", "draft", "host"};

namespace {

std::string dense_family(WeightType type) {
  return type == WeightType::bf16 || type == WeightType::int4 ? "dense_bf16" : type == WeightType::fp8 ? "dense_fp8" : "dense_fp4";
}

Group group_of(Part part) {
  switch (part) {
    case Part::attention: return Group::attention;
    case Part::router:
    case Part::shared:
    case Part::dense_ffn: return Group::moe;
    case Part::other: return Group::other;
    case Part::head:
    case Part::embedding: return Group::head;
    case Part::draft:
    case Part::draft_moe: return Group::draft;
  }
  return Group::other;
}

}  // namespace

std::vector<Operator> OperatorBuilder::build() {
  for (const Matrix& matrix : matrices(m_, std::max(1, c_.draft_tokens))) add_matrix(matrix);
  for (const LayerGroup& g : m_.layers) {
    const Rows rows = g.prefill_rows == PrefillRows::all ? Rows::tokens : Rows::tail_tokens;
    add_small(g.count, rows, Group::attention);
    add_core(g.count, {g.attends, g.compress_ratio, rows, 1}, Group::attention);
    add_index(g, rows);
    add_streams(g.count, rows, Group::other);
    add_engram(g, rows);
    add_composite(g.count, rows, g.attends);
    add_all_reduce("all-reduce", g.count, rows, Group::attention);
    add_all_reduce("all-reduce of experts", g.count, rows, Group::moe);
  }
  add_head();
  if (c_.draft_tokens > 0 && m_.draft) add_draft();
  if (c_.path == EnginePath::low_latency) add_fused_kernels();
  return std::move(list_);
}

// Same name, shape, features and rates: one row with more layers.
void OperatorBuilder::add(Operator op) {
  if (const CostRange* range = read_.range(op.family)) op.range = *range;
  if (c_.path == EnginePath::low_latency && fuses(op)) op.form.t0_s = op.fixed_floor_s = 0;  // kernels made for few rows split K
  for (Operator& known : list_)
    if (known.name == op.name && known.shape == op.shape && known.gate == op.gate && known.flops_of == op.flops_of &&
        known.bytes_fixed == op.bytes_fixed && known.form.t0_s == op.form.t0_s && known.seconds_per == op.seconds_per) {
      known.layers += op.layers;
      return;
    }
  list_.push_back(std::move(op));
}

void OperatorBuilder::add_matrix(const Matrix& m) {
  if (m.rows == Rows::none || m.name == "mhc mix") return;  // mHC has an operator of its own
  const bool draft = m.part == Part::draft || m.part == Part::draft_moe;
  if (draft && c_.draft_tokens == 0) return;
  if (m.part == Part::shared && c_.fused_experts()) return;  // inside the fused kernel
  const bool beside_experts = m.part == Part::shared;  // engines run it on a second stream: its latency hides, its work does not
  const int cut = m.cut == Cut::none ? 1 : cut_;
  const int batch = m.batch > 1 ? std::max(1, m.batch / cut) : 1;
  const double k = m.cut == Cut::rows ? double(m.k) / cut : m.k;
  const double n = m.cut == Cut::columns && m.batch == 1 ? double(m.n) / cut : m.n;
  Operator op;
  op.name = m.name;
  op.group = group_of(m.part);
  op.layers = m.layers * m.passes;
  const bool lacks_fp4 = c_.gpu.fp4 <= FlopsPerSecond{} && (m.type == WeightType::fp4 || m.type == WeightType::nvfp4);
  const WeightType type = lacks_fp4 ? WeightType::fp8 : m.type;  // as for routed experts
  op.family = dense_family(type);
  op.form = read_.roofline(op.family);
  op.launches = beside_experts ? 0 : 1;
  op.gate = op.flops_of = op.bytes_of = feature_of(m.rows);
  op.flops_per = 2 * k * n * batch;
  op.bytes_fixed = k * n * batch * bytes_per_weight(type);
  op.fixed_floor_s = k * read_.value_or(dense_family(type), "k_ns", 0) * 1e-9;
  const double input = type == WeightType::bf16 || type == WeightType::int4 ? 2 : 1;
  op.bytes_per = batch * (k * input + n * 2);
  op.shape = batch > 1 ? fmt::format("x{:g}x{:g} ({} of them)", k, n, batch) : fmt::format("x{:g}x{:g}", k, n);
  if (m.batch == 1 && type != WeightType::int4) use_exact_points(op, dense_family(type), n, k);
  add(std::move(op));
}

// What hides of a launch (launches 0) hides of a measured one: the ratio moves the work alone. Fused kernels of path low_latency
// are others than the tables'.
void OperatorBuilder::use_exact_points(Operator& op, const std::string& family, double n, double k) {
  const ExactShape shape{.n = static_cast<int>(n), .k = static_cast<int>(k)};
  const ExactCurve* curve = shape.n == n && shape.k == k ? c_.costs.exact(family, shape, m_.name) : nullptr;
  if (!curve || (c_.path == EnginePath::low_latency && fuses(op))) return;
  op.exact = ExactTimes(*curve, [&](double rows) {
    Features x{};
    x[static_cast<std::size_t>(op.gate)] = rows;
    return op.form_s(x);
  });
}

// What a layer costs beyond its operators (dependency gaps, unlisted traffic), fitted on whole steps or layers.
void OperatorBuilder::add_composite(double layers, Rows rows, Attends attends) {
  const char* own = attends == Attends::window ? "composite_window" : attends == Attends::selected ? "composite_selected" : "composite_all";
  const std::string family = read_.has(own) ? own : "composite";
  if (!read_.has(family) || c_.path == EnginePath::low_latency) return;
  Operator op;
  op.name = "layer composite";
  op.family = family;
  op.shape = "a0 + a1 x rows";
  op.group = Group::attention;
  op.layers = layers;
  op.form.t0_s = read_.value(family, "a0_us") * 1e-6;
  op.seconds_per = read_.value(family, "a1_us") * 1e-6;
  op.form.basis = read_.take_basis();
  op.gate = op.flops_of = op.bytes_of = feature_of(rows);
  const double context_s = read_.value_or(family, "a2_us", 0) * 1e-12;  // a token of context
  op.form.basis = std::max(op.form.basis, read_.take_basis());
  if (context_s > 0) {
    Operator by_context = op;
    by_context.name = "layer composite, context";
    by_context.shape = "a2 x tokens of context";
    by_context.form.t0_s = 0;
    by_context.seconds_per = context_s;
    by_context.gate = by_context.flops_of = by_context.bytes_of = decode_context_feature;
    add(std::move(by_context));
  }
  add(std::move(op));
}

// Tensor parallel: one all-reduce behind the attention and one behind the feed-forward side of every layer.
void OperatorBuilder::add_all_reduce(const char* name, double layers, Rows rows, Group group) {
  if (cut_ == 1) return;
  Operator op;
  op.name = name;
  op.family = "all_reduce";
  op.link_ranks = cut_;
  op.group = group;
  op.layers = layers;
  op.form.t0_s = (read_.value("all_reduce", "a0_us") + read_.value("all_reduce", "a1_us") * cut_) * 1e-6;
  const bool inside = c_.ranks <= c_.nvlink_domain;
  op.form.bytes_per_s = inside ? read_.value("all_reduce", "link_gbs") * 1e9 * c_.link_share
                               : c_.nic_bandwidth.value() * read_.value("all_reduce", "nic_efficiency");
  op.form.basis = read_.take_basis();
  op.gate = op.flops_of = op.bytes_of = feature_of(rows);
  op.bytes_per = 2.0 * m_.hidden * 2 * (cut_ - 1) / cut_;
  op.half_bytes = read_.value_or("all_reduce", "half_mb", 0) * 1e6;
  op.shape = fmt::format("x{} over {}", m_.hidden, cut_);
  add(std::move(op));
}

// Path low_latency: a layer is a handful of kernels that each do several operations. What is left of an operation is its
// work; the fixed time is that of the fused kernels. Exchanges, the head and the draft's own loop stay as they are.
bool OperatorBuilder::fuses(const Operator& op) {
  return op.group != Group::head && op.family != "all_reduce" && op.name != "draft head" && op.name != "draft markov bias" && op.name != "draft sampling";
}

void OperatorBuilder::add_fused_kernels() {
  const double kernels = read_.value("low_latency", "kernels_per_layer");
  const double kernel_s = read_.value("low_latency", "kernel_us") * 1e-6;
  const Basis basis = read_.take_basis();
  const auto layers = [&](const char* name, double count, Rows rows, Group group) {
    Operator op;
    op.name = name;
    op.family = "low_latency";
    op.group = group;
    op.layers = count;
    op.launches = kernels;
    op.form.t0_s = kernel_s;
    op.form.basis = basis;
    op.gate = op.flops_of = op.bytes_of = feature_of(rows);
    op.shape = fmt::format("{:g} kernels a layer", kernels);
    list_.push_back(std::move(op));
  };
  double all = 0, tail = 0;
  for (const LayerGroup& g : m_.layers) (g.prefill_rows == PrefillRows::all ? all : tail) += g.count;
  layers("fused kernels", all, Rows::tokens, Group::other);
  if (tail > 0) layers("fused kernels", tail, Rows::tail_tokens, Group::other);
  if (c_.draft_tokens > 0 && m_.draft) layers("draft fused kernels", m_.draft->stages, m_.draft->kind == DraftKind::dspark ? Rows::draft_tokens : Rows::draft_requests, Group::draft);
}

std::vector<Operator> build_operators(const StepContext& context, FeatureMap& map) { return OperatorBuilder(context, map).build(); }

}  // namespace rackcast
