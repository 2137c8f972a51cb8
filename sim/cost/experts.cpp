#include "sim/cost/experts.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/cost/expert_tile.hpp"
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
    case WeightType::int4: return "moe_fp8";  // its kernels, at the rate of BF16 tensor cores
  }
  return "";
}

}  // namespace

ExpertSide::ExpertSide(const StepContext& context, const ExpertShape& shape)
    : shape_(shape), ranks_(context.ranks), tensor_parallel_(context.tensor_parallel), whole_(context.whole_experts()), fused_(context.fused_experts()),
      nvlink_domain_(context.nvlink_domain) {
  const ModelSpec& m = context.model;
  ParameterReader read(context.costs, m.name);
  cut_ = whole_ ? 1 : ranks_;
  spread_ = whole_ ? ranks_ : 1;
  slots_ = std::ceil(double(shape.experts + (whole_ ? context.redundant_experts : 0)) / spread_);
  all_slots_ = slots_ * spread_;
  hidden_ = m.hidden;
  intermediate_ = m.experts.intermediate / cut_;
  const WeightType type = expert_weights(m, context.gpu);
  expert_weights_ = expert_parameters(m) * bytes_per_weight(type) / cut_;
  expert_flops_ = 2 * expert_parameters(m) / cut_;
  const auto know_range = [&](std::string_view family) {
    if (const CostRange* range = read.range(std::string(family))) ranges_[family] = *range;
  };
  if (fused_) {
    const char* family = "moe_fused";
    know_range(family);
    g_ = read.value(family, "g");
    t0_s_ = (read.value(family, "t0_us") + read.value(family, "tb_us") * std::log2(ranks_)) * 1e-6;
    grouped_ = {.t0_s = 0, .flops_per_s = read.value(family, "mma_tflops") * 1e12,
                .bytes_per_s = read.value(family, "hbm_gbs") * 1e9, .p = 1, .basis = Basis::measured};
    link_bytes_per_s_ = read.value(family, "link_gbs") * 1e9 * context.link_share;
    reduce_bytes_per_s_ = read.value(family, "reduce_gbs") * 1e9;
    norm_ = PNorm(read.value(family, "p"));
    fused_basis_ = read.take_basis();
    if (shape.with_shared) {
      const double parameters = 3.0 * m.hidden * m.experts.shared * m.experts.intermediate;
      shared_bytes_ = parameters * bytes_per_weight(m.dense_weights);
      shared_flops_ = 2 * parameters;
    }
    const ExactShape measured{.hidden = m.hidden, .intermediate = m.experts.intermediate, .experts = shape.experts, .top_k = shape.top_k, .ranks = ranks_};
    if (const ExactCurve* curve = context.costs.exact(family, measured, m.name))
      exact_ = ExactTimes(*curve, [this](double tokens) { return balanced_form_seconds(tokens); }, true);
    return;
  }
  experts_family_ = expert_family(type);
  for (const std::string_view family : {experts_family_, std::string_view("route")}) know_range(family);
  row_s_ = read.value_or(expert_family(type), "row_ns", 0) * 1e-9;
  tile_s_ = read.value_or(expert_family(type), "k_ns", 0) * 1e-9 * (hidden_ + intermediate_);
  received_ = distinct_ranks(spread_, shape.experts, shape.top_k) / spread_;
  grouped_ = read.roofline(expert_family(type));
  if (type == WeightType::int4) {
    grouped_.flops_per_s *= context.gpu.bf16.value() / context.gpu.fp8.value();
    grouped_.basis = std::max(grouped_.basis, Basis::transferred);
  }
  route_ = read.stream("route");
  if (context.path == EnginePath::low_latency) grouped_.t0_s = route_.t0_s = 0;  // within the fused kernels of a layer
  if (tensor_parallel_ || ranks_ == 1) return;
  read_exchanges(read, context);
  for (const std::string_view family : {dispatch_.family, combine_.family}) know_range(family);
}

void ExpertSide::read_exchanges(ParameterReader& read, const StepContext& context) {
  const double nic = context.nic_bandwidth.value();
  const std::string engine = "an engine of " + std::to_string(ranks_) + " ranks spans several NVLink domains, but ";
  if (whole_) {
    dispatch_ = read_exchange(read, "a2a_dispatch", hidden_ * (1 + 1.0 / 32));
    combine_ = read_exchange(read, "a2a_combine", hidden_ * 2);
    dispatch_.name = "dispatch";
    combine_.name = "combine";
    if (ranks_ > context.nvlink_domain && nic <= 0) throw UserError(engine + "the rack has no nic_bandwidth");
  } else {
    if (ranks_ > context.nvlink_domain) throw UserError(engine + "experts cut behind data-parallel attention need all ranks in one");
    dispatch_ = read_collective(read, context.costs, "nccl_all_gather", "nccl_reduce_scatter");
    combine_ = read_collective(read, context.costs, "nccl_reduce_scatter", "nccl_all_gather");
    dispatch_.name = "all-gather of tokens";
    combine_.name = "reduce-scatter of tokens";
  }
  for (Exchange* e : {&dispatch_, &combine_}) {
    e->nic_bytes_per_s *= nic;
    e->link_bytes_per_s *= context.link_share;
  }
}

// Every rank's tokens to all others, in BF16, or the sum over ranks of their parts back: the same bytes on every link, so that
// one stands for the other where a file knows one only.
ExpertSide::Exchange ExpertSide::read_collective(ParameterReader& read, const CostSpec& costs, const char* wanted, const char* other) const {
  const char* const family = costs.has(wanted) ? wanted : other;
  if (!costs.has(family))
    throw UserError("costs of " + costs.name + ": experts cut behind data-parallel attention (experts: tensor_parallel with dep) need " + wanted + " or " + other);
  Exchange e;
  e.bytes_per_token = hidden_ * 2 * (ranks_ - 1);
  e.t0_s = (read.value(family, "a0_us") + read.value(family, "a1_us") * ranks_) * 1e-6;
  e.link_bytes_per_s = read.value(family, "link_gbs") * 1e9;
  e.half_bytes = read.value_or(family, "half_mb", 0) * 1e6;
  e.basis = family == wanted ? read.take_basis() : std::max(read.take_basis(), Basis::transferred);
  e.family = family;
  return e;
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
  e.family = family;
  return e;
}

ExpertSide::Work ExpertSide::balanced_work(double largest, double total, double link_taken) const {
  Work w{.largest = largest, .mean = tensor_parallel_ ? total : total / ranks_, .total = total, .link_taken = link_taken};
  w.rows = (whole_ ? total / ranks_ : total) * shape_.top_k;
  w.weights = touched_slots(slots_, all_slots_, shape_.top_k, total) * expert_weights_;
  return w;
}

// Egress of the rank with most tokens or ingress of the busiest one. A collective's ranks take one another's.
double ExpertSide::exchange_bytes(const Exchange& e, const Work& w) const {
  if (!whole_) return e.bytes_per_token * w.mean;
  return e.bytes_per_token * std::max(w.largest, w.mean * w.most_ingress);
}

// Beyond the NVLink domain the NIC carries its share.
double ExpertSide::exchange_seconds(const Exchange& e, const Work& w) const {
  const double bytes = exchange_bytes(e, w);
  const double outside = ranks_ > nvlink_domain_ ? (ranks_ - nvlink_domain_) / (ranks_ - 1.0) : 0;
  const double timed = e.half_bytes > 0 ? bytes + std::sqrt(bytes * e.half_bytes) : bytes;
  const double link_s = timed * (1 - outside) / (e.link_bytes_per_s * (1 - w.link_taken));
  const double nic_s = outside > 0 ? bytes * outside / e.nic_bytes_per_s : 0;
  return e.t0_s + std::max(link_s, nic_s);
}

template <class Norm>
double ExpertSide::fused_seconds(const Work& w, const Norm& norm) const {
  return gain(w.mean) * fused_form_seconds(w, norm);
}

double ExpertSide::fused_link_bytes(const Work& w) const {
  const double link_rows = shape_.top_k * std::max(w.largest, w.mean * w.ingress);
  return link_rows * 3 * hidden_ * (ranks_ - 1) / ranks_;
}

template <class Norm>
double ExpertSide::fused_form_seconds(const Work& w, const Norm& norm) const {
  const double acts = w.rows * (3 * hidden_ + 2 * intermediate_);
  const double link = fused_link_bytes(w);
  const double flops = w.rows * expert_flops_ + w.largest * shared_flops_;
  const double memory_s = (w.weights + shared_bytes_ + acts) / grouped_.bytes_per_s;
  const double overlapped = norm(norm(memory_s, flops / grouped_.flops_per_s), link / (link_bytes_per_s_ * (1 - w.link_taken)));
  const double reduce = w.largest * hidden_ * 2 * (1 + shape_.top_k);
  return t0_s_ + overlapped + reduce / reduce_bytes_per_s_;
}

double ExpertSide::balanced_form_seconds(double mean_tokens) const {
  return fused_form_seconds(balanced_work(mean_tokens, mean_tokens * ranks_, 0), norm_);
}

double ExpertSide::gain(double mean_tokens) const {
  if (exact_.empty() || mean_tokens <= 0) return g_;
  if (mean_tokens != gain_tokens_) {
    const double form_s = balanced_form_seconds(mean_tokens);
    gain_tokens_ = mean_tokens;
    gain_ = g_ * exact_.seconds(mean_tokens, form_s) / form_s;
  }
  return gain_;
}

// The grouped product with its permutation. In tiles: empty rows are multiplied, too, and a tile's loop over K is waited for.
double ExpertSide::grouped_seconds(const Work& w) const {
  const double bytes = w.weights + w.rows * (3 * hidden_ + 2 * intermediate_);
  const double arriving = w.total * received_ * w.ingress;
  if (tile_s_ <= 0) return grouped_.seconds(w.rows * expert_flops_, bytes) + row_s_ * arriving;
  const double tile = expert_tile(arriving * shape_.top_k / slots_);
  return grouped_.seconds(padded_rows(w.rows, w.weights / expert_weights_, tile) * expert_flops_, bytes) +
         tile_s_ * tile / largest_expert_tile + row_s_ * arriving;
}

std::vector<RangeExit> ExpertSide::exits(const ExpertCost& part) const {
  const auto range = ranges_.find(part.family);
  if (range == ranges_.end()) return {};
  const double link_bytes = part.link_bytes / shape_.layers, bytes = part.flops > 0 ? part.bytes / shape_.layers : 0;  // an exchange moves no others
  return range->second.exits(launch_work(part.flops / shape_.layers, bytes, link_bytes, link_bytes > 0 ? ranks_ : 0));
}

int ExpertSide::parts(const Work& w, std::array<ExpertCost, max_rows>& out) const {
  const double acts = w.rows * (3 * hidden_ + 2 * intermediate_);
  if (fused_) {
    const double flops = w.rows * expert_flops_ + w.largest * shared_flops_;
    const double reduce = w.largest * hidden_ * 2 * (1 + shape_.top_k);
    out[0] = {"experts, fused with exchange", flops, w.weights + shared_bytes_ + acts + reduce, fused_seconds(w, norm_), fused_basis_, false,
              experts_family_, fused_link_bytes(w)};
    if (!exact_.empty() && w.mean > 0 && exact_.share(w.mean) > 0) {
      out[0].basis = exact_.basis_at(w.mean, fused_basis_);
      out[0].exact = true;
    }
    return 1;
  }
  std::size_t n = 0;
  const bool exchanges = !tensor_parallel_ && ranks_ > 1;
  // The tables behind the expert families time gather, scatter and reduction with the products; what is left is the router's tail.
  const auto exchange = [&](const Exchange& e) {
    const double bytes = exchange_bytes(e, w);
    if (exchanges) out[n++] = {e.name, 0, bytes, exchange_seconds(e, w), e.basis, false, e.family, bytes};
  };
  out[n++] = {"routing", 0, 0, route_.seconds(0, 0), route_.basis, false, "route", 0};
  exchange(dispatch_);
  out[n++] = {"routed experts", w.rows * expert_flops_, w.weights + acts, grouped_seconds(w), grouped_.basis, false, experts_family_, 0};
  exchange(combine_);
  return static_cast<int>(n);
}

double ExpertSide::work_seconds(const Work& w) const {
  if (fused_) return fused_seconds(w, norm_);
  std::array<ExpertCost, max_rows> costs;
  const int n = parts(w, costs);
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += costs[static_cast<std::size_t>(i)].seconds;
  return sum;
}

double ExpertSide::work_seconds_above(const Work& w) const {
  return fused_ ? fused_seconds(w, [this](double a, double b) { return norm_.above(a, b); }) : work_seconds(w);
}

ExchangePhase ExpertSide::phase_of(const Exchange& e) const {
  return {e.bytes_per_token * ranks_ / (ranks_ - 1), e.link_bytes_per_s, e.nic_bytes_per_s};
}

// What an exchange takes beside the bytes that the network moves.
double ExpertSide::unmoved_s(const Exchange& e, const Work& w) const {
  return e.t0_s + (e.half_bytes > 0 ? std::sqrt(exchange_bytes(e, w) * e.half_bytes) / (e.link_bytes_per_s * (1 - w.link_taken)) : 0);
}

// The terms of evaluate(), rank by rank.
ExpertPhases ExpertSide::phases(std::span<const double> sent, const StepDemand* demand, double link_taken) const {
  ExpertPhases p;
  p.layers = static_cast<int>(std::lround(shape_.layers));
  p.fused = fused_;
  double total = 0;
  for (const double rows : sent) total += rows;
  const double ranks = static_cast<double>(sent.size()), mean = total / ranks;
  if (whole_) p.rows.assign(sent.begin(), sent.end());
  else p.rows.assign(sent.size(), mean);  // a collective's ranks pass one another's tokens on
  const ExpertDemand busiest = demand && uneven() ? demand->mean : ExpertDemand{};
  const double link = link_bytes_per_s_ * (1 - link_taken);
  const auto of_rank = [&](std::size_t r, double most) { return r == 0 ? most : (ranks - most) / (ranks - 1); };
  for (std::size_t r = 0; r < sent.size(); ++r) {
    const double rows = (whole_ ? total / ranks_ * of_rank(r, busiest.rows) : total) * shape_.top_k, ingress = of_rank(r, busiest.ingress);
    const double weights = (r == 0 || !whole_) && demand && uneven() ? uneven_work(sent[r], total, busiest, busiest.ingress, link_taken).weights
                                                        : balanced_work(sent[r], total, link_taken).weights;
    const double acts = rows * (3 * hidden_ + 2 * intermediate_), flops = rows * expert_flops_;
    p.share.push_back(ingress / ranks);
    if (fused_) {
      p.before_s.push_back(0);
      p.experts_s.push_back(p_norm((weights + shared_bytes_ + acts) / grouped_.bytes_per_s, (flops + sent[r] * shared_flops_) / grouped_.flops_per_s, norm_.p()));
      p.reduce_s.push_back(sent[r] * hidden_ * 2 * (1 + shape_.top_k) / reduce_bytes_per_s_);
    } else {
      const Work work{.largest = sent[r], .mean = mean, .total = total, .rows = rows, .weights = weights, .ingress = ingress, .link_taken = link_taken};
      p.before_s.push_back(route_.seconds(0, 0) + unmoved_s(dispatch_, work));
      p.experts_s.push_back(grouped_seconds(work) + unmoved_s(combine_, work));
    }
  }
  if (fused_) {
    p.dispatch = {shape_.top_k * hidden_, link, link};
    p.combine = {shape_.top_k * hidden_ * 2, link, link};
    p.gain = gain(mean);
    p.launch_s = t0_s_;
    p.overlap = norm_.p();
  } else {
    p.dispatch = phase_of(dispatch_);
    p.combine = phase_of(combine_);
  }
  return p;
}

}  // namespace rackcast
