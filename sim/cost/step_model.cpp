#include "sim/cost/step_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "sim/base/error.hpp"
#include "sim/cost/experts.hpp"
#include "sim/cost/host_time.hpp"
#include "sim/cost/low_latency.hpp"
#include "sim/cost/operators.hpp"
#include "sim/cost/shapes.hpp"

namespace rackcast {

bool StepContext::fused_experts() const {
  return model.experts.fused && !tensor_parallel && ranks <= nvlink_domain && costs.has("moe_fused", model.name) &&
         expert_weights(model, gpu) == WeightType::fp4;
}

namespace {

constexpr int group_count = 6;
using GroupSeconds = std::array<double, group_count>;
constexpr std::size_t index_of(Group g) { return static_cast<std::size_t>(g); }

// Time by group of the operators that work on one row count, kept by that count once computed.
class RowCurve {
 public:
  void add(const Operator* op) { operators_.push_back(op); }

  const GroupSeconds& at(double rows, std::size_t feature, GroupSeconds& scratch) const {
    const auto whole = static_cast<std::size_t>(rows);
    if (rows >= kept_limit || static_cast<double>(whole) != rows) {
      scratch = compute(rows, feature);
      return scratch;
    }
    if (whole >= kept_.size()) {
      GroupSeconds unknown;
      unknown.fill(std::numeric_limits<double>::quiet_NaN());
      kept_.resize(std::max<std::size_t>(whole + 1, 2 * kept_.size()), unknown);
    }
    if (std::isnan(kept_[whole][0])) kept_[whole] = compute(rows, feature);
    return kept_[whole];
  }

 private:
  static constexpr double kept_limit = 1 << 18;
  GroupSeconds compute(double rows, std::size_t feature) const {
    Features x{};
    x[feature] = rows;
    GroupSeconds sum{};
    for (const Operator* op : operators_) sum[index_of(op->group)] += op->seconds(x);
    return sum;
  }

  std::vector<const Operator*> operators_;
  mutable std::vector<GroupSeconds> kept_;  // a model serves one thread
};

// An operator of several features, cut down to what its time needs.
struct DirectOperator {
  explicit DirectOperator(const Operator& op)
      : gate(op.gate), flops_of(op.flops_of), bytes_of(op.bytes_of), rows_of(op.rows_of < 0 ? op.gate : op.rows_of), group(static_cast<int>(op.group)), layers(op.layers),
        fixed_s(op.launches * op.form.t0_s), per_row_s(op.seconds_per), per_flops_s(op.flops_per / op.form.flops_per_s),
        per_bytes_s(op.bytes_per / op.form.bytes_per_s), bytes_fixed_s(op.bytes_fixed / op.form.bytes_per_s), p(op.form.p) {}
  double seconds(const Features& x) const {
    if (x[static_cast<std::size_t>(gate)] <= 0) return 0;
    return layers * (fixed_s + per_row_s * x[static_cast<std::size_t>(rows_of)] + p_norm(per_flops_s * x[static_cast<std::size_t>(flops_of)],
                                                          bytes_fixed_s + per_bytes_s * x[static_cast<std::size_t>(bytes_of)], p));
  }
  int gate, flops_of, bytes_of, rows_of, group;
  double layers, fixed_s, per_row_s, per_flops_s, per_bytes_s, bytes_fixed_s, p;
};

struct RankTime {
  GroupSeconds groups{};
  double layers_s() const { return groups[index_of(Group::attention)] + groups[index_of(Group::other)]; }
};

// Experts of one kind of rows.
struct ExpertRows {
  ExpertSide side;
  Rows rows;
  double passes;
  Group group;
  double layers;
};

class ClosedFormStep : public StepModel {
 public:
  explicit ClosedFormStep(const StepContext& context)
      : ranks_(context.ranks), tensor_parallel_(context.tensor_parallel),
        map_(context.model, context.kv_format, context.draft_tokens,
             context.tensor_parallel && context.model.attention.form == AttentionForm::grouped
                 ? std::min(context.ranks, context.model.attention.kv_heads) : 1),
        operators_(build_operators(context, map_)) {
    for (const Operator& op : operators_)
      if (op.by_rows()) curves_[static_cast<std::size_t>(op.gate)].add(&op);
      else direct_.emplace_back(op);
    add_experts(context);
    read_host(context);
  }

  StepTime step(std::span<const RankBatch> ranks, const ExpertLoad& load) const override {
    const Slowest s = slowest(ranks);
    StepTime t;
    t.attention_s = s.layers.groups[index_of(Group::attention)];
    t.other_s = s.layers.groups[index_of(Group::other)];
    t.moe_s = s.moe_s;
    t.head_s = s.head_s;
    t.draft_s = s.draft_s;
    for (const ExpertRows& e : experts_) {
      const auto f = static_cast<std::size_t>(e.rows);
      const double seconds = e.passes * e.side.seconds(s.largest[f], s.total[f], load);
      (e.group == Group::draft ? t.draft_s : t.moe_s) += seconds;
    }
    const double gpu_s = t.attention_s + t.moe_s + t.other_s + t.head_s + t.draft_s;
    t.host_s = host_.exposed_s(s.host_s, s.host_behind_s, gpu_s);
    t.total_s = gpu_s + t.host_s;
    return t;
  }

  std::vector<OperatorCost> operators(std::span<const RankBatch> ranks, const ExpertLoad& load) const override {
    const Slowest s = slowest(ranks);
    std::vector<OperatorCost> rows;
    double gpu_s = 0;
    std::array<Features, 4> features{};
    for (std::size_t i = 0; i < 4; ++i) map_.compute(*s.batch[i], features[i]);
    for (const Operator& op : operators_) {
      const Features& x = features[static_cast<std::size_t>(source_of(op))];
      const double seconds = op.seconds(x);
      if (seconds == 0) continue;
      gpu_s += seconds;
      const double count = x[static_cast<std::size_t>(op.gate)];
      rows.push_back({op.name, std::string(group_names[index_of(op.group)]), static_cast<int>(op.layers + 0.5),
                      fmt::format("{:.0f} {}", count, op.shape), op.flops(x), op.bytes(x), seconds,
                      std::string(basis_names[static_cast<int>(op.form.basis)])});
    }
    for (const ExpertRows& e : experts_) {
      const auto f = static_cast<std::size_t>(e.rows);
      std::array<ExpertCost, ExpertSide::max_rows> parts;
      const int n = e.side.evaluate(s.largest[f], s.total[f], load, parts);
      for (int i = 0; i < n; ++i) {
        const ExpertCost& part = parts[static_cast<std::size_t>(i)];
        gpu_s += e.passes * part.seconds;
        rows.push_back({(e.group == Group::draft ? "draft " : "") + std::string(part.name),
                        std::string(group_names[index_of(e.group)]), static_cast<int>(e.layers * e.passes + 0.5),
                        fmt::format("{:.0f} rows a rank", s.total[f] / (tensor_parallel_ ? 1 : ranks_)), e.passes * part.flops,
                        e.passes * part.bytes, e.passes * part.seconds,
                        std::string(basis_names[static_cast<int>(part.basis)])});
      }
    }
    const double host_s = host_.exposed_s(s.host_s, s.host_behind_s, gpu_s);
    rows.push_back({"host, exposed", "host", 1, fmt::format("{:.0f} requests", s.requests), 0, 0, host_s,
                    std::string(basis_names[static_cast<int>(host_.basis())])});
    return rows;
  }

  BasisShare basis_of(std::span<const RankBatch> ranks) const override {
    std::array<double, 4> seconds{};
    double sum = 0;
    for (const OperatorCost& row : operators(ranks, {})) {
      const auto found = std::find(std::begin(basis_names), std::end(basis_names), row.basis);
      seconds[static_cast<std::size_t>(found - std::begin(basis_names))] += row.time_s;
      sum += row.time_s;
    }
    if (sum <= 0) return {};
    return {seconds[0] / sum, seconds[1] / sum, seconds[2] / sum, seconds[3] / sum};
  }

 private:
  struct Slowest {
    RankTime layers;                       // of the rank with most attention-side time
    double moe_s = 0, head_s = 0, draft_s = 0;  // rank-level operators of these groups, each of its own slowest rank
    double requests = 0;                   // most on one rank
    double host_s = 0, host_behind_s = 0;  // most work of one host
    std::array<double, row_features> largest{}, total{};
    std::array<const RankBatch*, 4> batch{};  // of the slowest rank by layers, moe, head, draft
  };

  static int source_of(const Operator& op) {
    switch (op.group) {
      case Group::moe: return 1;
      case Group::head: return 2;
      case Group::draft: return 3;
      default: return 0;
    }
  }

  RankTime rank_time(const Features& x) const {
    RankTime t;
    GroupSeconds scratch;
    for (std::size_t f = 0; f < row_features; ++f) {
      if (x[f] <= 0) continue;
      const GroupSeconds& add = curves_[f].at(x[f], f, scratch);
      for (std::size_t g = 0; g < group_count; ++g) t.groups[g] += add[g];
    }
    for (const DirectOperator& op : direct_) t.groups[static_cast<std::size_t>(op.group)] += op.seconds(x);
    return t;
  }

  Slowest slowest(std::span<const RankBatch> ranks) const {
    static constexpr RankBatch idle{};
    Slowest s;
    s.batch.fill(&idle);
    double layers_s = 0;
    Features x{};
    for (const RankBatch& batch : ranks) {
      map_.compute(batch, x);
      const RankTime t = rank_time(x);
      if (t.layers_s() > layers_s) {
        layers_s = t.layers_s();
        s.layers = t;
        s.batch[0] = &batch;
      }
      keep_slower(t.groups[index_of(Group::moe)], s.moe_s, batch, s.batch[1]);
      keep_slower(t.groups[index_of(Group::head)], s.head_s, batch, s.batch[2]);
      keep_slower(t.groups[index_of(Group::draft)], s.draft_s, batch, s.batch[3]);
      s.requests = std::max(s.requests, batch.decode_requests + batch.prefill_requests);
      s.host_s = std::max(s.host_s, host_.work_s(batch));
      s.host_behind_s = std::max(s.host_behind_s, batch.host_behind_s);
      for (std::size_t f = 0; f < row_features; ++f) {
        s.largest[f] = std::max(s.largest[f], x[f]);
        s.total[f] += x[f];
      }
    }
    return s;
  }

  static void keep_slower(double seconds, double& slowest_s, const RankBatch& batch, const RankBatch*& kept) {
    if (seconds <= slowest_s) return;
    slowest_s = seconds;
    kept = &batch;
  }

  void add_experts(const StepContext& c) {
    const ExpertsSpec& e = c.model.experts;
    for (const PrefillRows rows : {PrefillRows::all, PrefillRows::tail}) {
      const double layers = moe_layers(c.model, rows);
      if (layers <= 0) continue;
      experts_.push_back({ExpertSide(c, {layers, e.count, e.top_k, true}),
                          rows == PrefillRows::all ? Rows::tokens : Rows::tail_tokens, 1, Group::moe, layers});
    }
    if (c.draft_tokens == 0 || !c.model.draft || c.model.draft->experts == 0) return;
    const DraftSpec& d = *c.model.draft;
    StepContext draft = c;
    draft.redundant_experts = 0;
    const bool block = d.kind == DraftKind::dspark;
    experts_.push_back({ExpertSide(draft, {double(d.stages), d.experts, d.top_k, false}),
                        block ? Rows::draft_tokens : Rows::draft_requests, block ? 1.0 : c.draft_tokens, Group::draft,
                        double(d.stages)});
  }

  void read_host(const StepContext& c) {
    ParameterReader read(c.costs, c.model.name);
    host_ = HostTime(c.host, c.tensor_parallel ? 1 : c.ranks, read);
  }

  int ranks_;
  bool tensor_parallel_;
  FeatureMap map_;
  std::vector<Operator> operators_;
  std::array<RowCurve, row_features> curves_;
  std::vector<DirectOperator> direct_;
  std::vector<ExpertRows> experts_;
  HostTime host_;
};

}  // namespace

std::unique_ptr<StepModel> make_step_model(const StepContext& context) {
  RACKCAST_CHECK(context.ranks > 0, "an engine without ranks");
  if (context.path == EnginePath::low_latency) {
    StepContext standard = context;
    standard.path = EnginePath::standard;
    return make_two_path_model(std::make_unique<ClosedFormStep>(standard), std::make_unique<ClosedFormStep>(context));
  }
  return std::make_unique<ClosedFormStep>(context);
}

std::unique_ptr<StepModel> make_step_model(const ModelSpec& model, const RackSpec& rack, const EngineSpec& engine,
                                           const DeploymentSpec& deployment, const Catalog& catalog, double link_share) {
  StepContext context;
  context.model = model;
  context.gpu = rack.gpu;
  context.costs = read_costs(catalog, engine.cost.empty() ? rack.gpu.name : engine.cost);
  context.ranks = engine.ranks();
  context.tensor_parallel = engine.tp > 0;
  context.nvlink_domain = rack.nvlink_domain;
  context.nic_bandwidth = rack.nic_bandwidth;
  context.redundant_experts = deployment.eplb.redundant_experts;
  context.draft_tokens = deployment.speculation.draft_tokens;
  context.kv_format = deployment.kv_cache.format;
  context.engram = deployment.engram;
  context.path = engine.path;
  context.link_share = link_share;
  context.host = deployment.host;
  return make_step_model(context);
}

}  // namespace rackcast
