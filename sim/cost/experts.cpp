#include "sim/cost/experts.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/cost/shapes.hpp"

namespace rackcast {

double touched_slots(double slots, double all_slots, double top_k, double tokens) {
  return slots * -std::expm1(tokens * std::log1p(-std::min(top_k / all_slots, 1 - 1e-12)));
}

// R (1 - C(E - E/R, k) / C(E, k)), the product form of the binomials.
double distinct_ranks(int ranks, int experts, int top_k) {
  const double per_rank = double(experts) / ranks;
  double misses = 1;
  for (int i = 0; i < top_k; ++i) misses *= std::max(0.0, experts - per_rank - i) / (experts - i);
  return ranks * (1 - misses);
}

namespace {

const char* expert_family(WeightType type) {
  switch (type) {
    case WeightType::bf16: return "moe_bf16";
    case WeightType::fp8: return "moe_fp8";
    case WeightType::fp4: return "moe_fp4";
    case WeightType::nvfp4: return "moe_nvfp4";
  }
  return "";
}

}  // namespace

ExpertSide::ExpertSide(const StepContext& context, const ExpertShape& shape)
    : shape_(shape), ranks_(context.ranks), tensor_parallel_(context.tensor_parallel), fused_(context.fused_experts()),
      nvlink_domain_(context.nvlink_domain) {
  const ModelSpec& m = context.model;
  ParameterReader read(context.costs, m.name);
  cut_ = tensor_parallel_ ? ranks_ : 1;
  const int spread = tensor_parallel_ ? 1 : ranks_;
  slots_ = std::ceil(double(shape.experts + context.redundant_experts) / spread);
  all_slots_ = slots_ * spread;
  hidden_ = m.hidden;
  intermediate_ = m.experts.intermediate / cut_;
  const WeightType type = expert_weights(m, context.gpu);
  expert_weights_ = expert_parameters(m) * bytes_per_weight(type) / cut_;
  expert_flops_ = 2 * expert_parameters(m) / cut_;
  if (fused_) {
    const char* family = "moe_fused";
    g_ = read.value(family, "g");
    t0_s_ = (read.value(family, "t0_us") + read.value(family, "tb_us") * std::log2(ranks_)) * 1e-6;
    grouped_ = {.t0_s = 0, .flops_per_s = read.value(family, "mma_tflops") * 1e12,
                .bytes_per_s = read.value(family, "hbm_gbs") * 1e9, .p = 1, .basis = Basis::measured};
    link_bytes_per_s_ = read.value(family, "link_gbs") * 1e9 * context.link_share;
    reduce_bytes_per_s_ = read.value(family, "reduce_gbs") * 1e9;
    p_ = read.value(family, "p");
    fused_basis_ = read.take_basis();
    if (shape.with_shared) {
      const double parameters = 3.0 * m.hidden * m.experts.shared * m.experts.intermediate;
      shared_bytes_ = parameters * bytes_per_weight(m.dense_weights);
      shared_flops_ = 2 * parameters;
    }
    return;
  }
  row_s_ = read.value_or(expert_family(type), "row_ns", 0) * 1e-9;
  received_ = distinct_ranks(spread, shape.experts, shape.top_k) / spread;
  grouped_ = read.roofline(expert_family(type));
  route_ = read.stream("route");
  if (context.path == EnginePath::low_latency) grouped_.t0_s = route_.t0_s = 0;  // within the fused kernels of a layer
  if (tensor_parallel_ || ranks_ == 1) return;
  dispatch_ = read_exchange(read, "a2a_dispatch", hidden_ * (1 + 1.0 / 32));
  combine_ = read_exchange(read, "a2a_combine", hidden_ * 2);
  const double nic = context.nic_bandwidth.value();
  for (Exchange* e : {&dispatch_, &combine_}) {
    e->nic_bytes_per_s *= nic;
    e->link_bytes_per_s *= context.link_share;
  }
  if (ranks_ > context.nvlink_domain && nic <= 0)
    throw UserError("an engine of " + std::to_string(ranks_) + " ranks spans several NVLink domains, but the rack has no nic_bandwidth");
}

// form "unique": a token goes once to each rank that needs it; "copies": once for each expert.
ExpertSide::Exchange ExpertSide::read_exchange(ParameterReader& read, const char* family, double bytes_per_copy) const {
  Exchange e;
  const bool unique = read.form(family) == "unique";
  const double copies = unique ? distinct_ranks(ranks_, shape_.experts, shape_.top_k) : shape_.top_k;
  e.bytes_per_token = copies * bytes_per_copy * (ranks_ - 1) / ranks_;
  e.t0_s = (read.value(family, "alpha_us") + read.value(family, "gamma_us") * std::log2(ranks_)) * 1e-6;
  e.link_bytes_per_s = read.value(family, "link_gbs") * 1e9;
  if (ranks_ > nvlink_domain_) {
    e.t0_s += read.value(family, "nic_alpha_us") * 1e-6;
    e.nic_bytes_per_s = read.value(family, "nic_efficiency");
  }
  e.basis = read.take_basis();
  return e;
}

// Egress of the rank with most tokens or ingress of the busiest one; beyond the NVLink domain the NIC carries its share.
void ExpertSide::exchange(const Exchange& e, const char* name, double largest, double total, const ExpertLoad& load,
                          ExpertCost& out) const {
  const double bytes = e.bytes_per_token * std::max(largest, total / ranks_ * load.ingress_max);
  const double outside = ranks_ > nvlink_domain_ ? (ranks_ - nvlink_domain_) / (ranks_ - 1.0) : 0;
  const double link_s = bytes * (1 - outside) / e.link_bytes_per_s;
  const double nic_s = outside > 0 ? bytes * outside / e.nic_bytes_per_s : 0;
  out = {name, 0, shape_.layers * bytes, shape_.layers * (e.t0_s + std::max(link_s, nic_s)), e.basis};
}

double ExpertSide::touched(double total, const ExpertLoad& load) const {
  const double spread = tensor_parallel_ ? 1 : ranks_;
  return load.touched_max > 0
             ? std::min(slots_, load.touched_max * touched_slots(shape_.experts / spread, shape_.experts, shape_.top_k, total))
             : touched_slots(slots_, all_slots_, shape_.top_k, total);
}

int ExpertSide::evaluate(double largest, double total, const ExpertLoad& load,
                         std::array<ExpertCost, max_rows>& out) const {
  if (total <= 0 || shape_.layers <= 0) return 0;
  const double mean = tensor_parallel_ ? total : total / ranks_;
  const double rows = mean * shape_.top_k * load.rows_max;
  const double weights = touched(total, load) * expert_weights_;
  if (fused_) {
    const double acts = rows * (3 * hidden_ + 2 * intermediate_);
    const double link_rows = shape_.top_k * std::max(largest, mean * load.ingress_max);
    const double link = link_rows * 3 * hidden_ * (ranks_ - 1) / ranks_;
    const double flops = rows * expert_flops_ + largest * shared_flops_;
    const double memory_s = (weights + shared_bytes_ + acts) / grouped_.bytes_per_s;
    const double overlapped = p_norm(p_norm(memory_s, flops / grouped_.flops_per_s, p_), link / link_bytes_per_s_, p_);
    const double reduce = largest * hidden_ * 2 * (1 + shape_.top_k);
    const double seconds = g_ * (t0_s_ + overlapped + reduce / reduce_bytes_per_s_);
    out[0] = {"experts, fused with exchange", shape_.layers * flops, shape_.layers * (weights + shared_bytes_ + acts + reduce),
              shape_.layers * seconds, fused_basis_};
    return 1;
  }
  int n = 0;
  // The tables behind the expert families time gather, scatter and reduction with the products; what is left is the router's tail.
  out[static_cast<std::size_t>(n++)] = {"routing", 0, 0, shape_.layers * route_.seconds(0, 0), route_.basis};
  if (!tensor_parallel_ && ranks_ > 1) exchange(dispatch_, "dispatch", largest, total, load, out[static_cast<std::size_t>(n++)]);
  const double acts = rows * (3 * hidden_ + 2 * intermediate_);
  out[static_cast<std::size_t>(n++)] = {"routed experts", shape_.layers * rows * expert_flops_, shape_.layers * (weights + acts),
              shape_.layers * (grouped_.seconds(rows * expert_flops_, weights + acts) + row_s_ * total * received_ * load.ingress_max), grouped_.basis};
  if (!tensor_parallel_ && ranks_ > 1) exchange(combine_, "combine", largest, total, load, out[static_cast<std::size_t>(n++)]);
  return n;
}

double ExpertSide::seconds(double largest, double total, const ExpertLoad& load) const {
  std::array<ExpertCost, max_rows> parts;
  const int n = evaluate(largest, total, load, parts);
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += parts[static_cast<std::size_t>(i)].seconds;
  return sum;
}

ExchangePhase ExpertSide::phase_of(const Exchange& e) const {
  return {e.bytes_per_token * ranks_ / (ranks_ - 1), e.link_bytes_per_s, e.nic_bytes_per_s};
}

// The terms of evaluate(), rank by rank.
ExpertPhases ExpertSide::phases(std::span<const double> sent, const ExpertLoad& load) const {
  ExpertPhases p;
  p.layers = static_cast<int>(shape_.layers + 0.5);
  p.rows.assign(sent.begin(), sent.end());
  p.fused = fused_;
  double total = 0;
  for (const double rows : sent) total += rows;
  const double ranks = static_cast<double>(sent.size()), mean = total / ranks;
  const auto of_rank = [&](std::size_t r, double most) { return r == 0 ? most : (ranks - most) / (ranks - 1); };
  for (std::size_t r = 0; r < sent.size(); ++r) {
    const double rows = mean * shape_.top_k * of_rank(r, load.rows_max), ingress = of_rank(r, load.ingress_max);
    const double weights = touched(total, r == 0 ? load : ExpertLoad{}) * expert_weights_;
    const double acts = rows * (3 * hidden_ + 2 * intermediate_), flops = rows * expert_flops_;
    p.share.push_back(ingress / ranks);
    if (fused_) {
      p.before_s.push_back(0);
      p.experts_s.push_back(p_norm((weights + shared_bytes_ + acts) / grouped_.bytes_per_s, (flops + sent[r] * shared_flops_) / grouped_.flops_per_s, p_));
      p.reduce_s.push_back(sent[r] * hidden_ * 2 * (1 + shape_.top_k) / reduce_bytes_per_s_);
    } else {
      p.before_s.push_back(route_.seconds(0, 0) + dispatch_.t0_s);
      p.experts_s.push_back(grouped_.seconds(flops, weights + acts) + row_s_ * total * received_ * ingress + combine_.t0_s);
    }
  }
  if (fused_) {
    p.dispatch = {shape_.top_k * hidden_, link_bytes_per_s_, link_bytes_per_s_};
    p.combine = {shape_.top_k * hidden_ * 2, link_bytes_per_s_, link_bytes_per_s_};
    p.gain = g_;
    p.launch_s = t0_s_;
    p.overlap = p_;
  } else {
    p.dispatch = phase_of(dispatch_);
    p.combine = phase_of(combine_);
  }
  return p;
}

}  // namespace rackcast
