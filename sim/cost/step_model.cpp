#include "sim/cost/step_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "sim/base/error.hpp"
#include "sim/cost/experts.hpp"
#include "sim/cost/host_time.hpp"
#include "sim/cost/low_latency.hpp"
#include "sim/cost/operators.hpp"
#include "sim/cost/shapes.hpp"
#include "sim/cost/sustained.hpp"

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
        per_bytes_s(op.bytes_per / op.form.bytes_per_s), bytes_fixed_s(op.bytes_fixed_timed() / op.form.bytes_per_s), norm(op.form.p) {}
  double seconds(const Features& x) const {
    return with(x, [&](double a, double b) { return norm.cheap() ? norm(a, b) : kept(a, b); });
  }
  double seconds_above(const Features& x) const {
    return with(x, [&](double a, double b) { return norm.above(a, b); });
  }
  int gate, flops_of, bytes_of, rows_of, group;
  double layers, fixed_s, per_row_s, per_flops_s, per_bytes_s, bytes_fixed_s;
  PNorm norm;

 private:
  template <class Norm>
  double with(const Features& x, Norm&& of) const {
    if (x[static_cast<std::size_t>(gate)] <= 0) return 0;
    return layers * (fixed_s + per_row_s * x[static_cast<std::size_t>(rows_of)] +
                     of(per_flops_s * x[static_cast<std::size_t>(flops_of)], bytes_fixed_s + per_bytes_s * x[static_cast<std::size_t>(bytes_of)]));
  }
  // Windows are full, so that many ranks and steps ask for the same norm.
  struct Kept {
    double a = -1, b = -1, norm = 0;
  };
  double kept(double a, double b) const {
    Kept& slot = kept_[(std::bit_cast<std::uint64_t>(a) * 0x9e3779b97f4a7c15ULL ^ std::bit_cast<std::uint64_t>(b) * 0xff51afd7ed558ccdULL) >> 58];
    if (slot.a != a || slot.b != b) slot = {a, b, norm(a, b)};
    return slot.norm;
  }
  mutable std::array<Kept, 64> kept_;  // a model serves one thread
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
    for (const DirectOperator& op : direct_) {
      const auto group = static_cast<Group>(op.group);
      if (!op.norm.cheap()) costly_[key_of(group)] = true;
    }
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
    const ExpertRows* last = nullptr;  // in decode steps the layers that run all rows and those that run the last ones are alike
    double last_s = 0;
    for (const ExpertRows& e : experts_) {
      const auto f = static_cast<std::size_t>(e.rows);
      if (last && alike(*last, e, s)) last_s *= e.layers / last->layers;
      else last_s = e.passes * e.side.seconds(s.largest[f], s.total[f], demand_of(e, s.total[f], load), load.link_taken);
      last = &e;
      (e.group == Group::draft ? t.draft_s : t.moe_s) += last_s;
    }
    const double gpu_s = t.attention_s + t.moe_s + t.other_s + t.head_s + t.draft_s;
    t.host_s = host_.exposed_s(s.host_s, s.host_behind_s, gpu_s, s.prompts);
    t.total_s = gpu_s + t.host_s;
    return t;
  }

  StepPhases phases(std::span<const RankBatch> ranks, const ExpertLoad& load) const override {
    StepPhases p;
    const StepTime whole = step(ranks, load);
    p.rest_s = whole.head_s + whole.draft_s + whole.host_s;
    std::vector<Features> features(ranks.size());
    std::vector<double> own_moe_s;  // router and the like
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      map_.compute(ranks[r], features[r]);
      const RankTime t = rank_time(features[r]);
      p.layers_s.push_back(t.layers_s());
      own_moe_s.push_back(t.groups[index_of(Group::moe)]);
    }
    int layers = 0;
    for (const ExpertRows& e : experts_) {
      if (e.group == Group::draft) continue;
      std::vector<double> rows;
      for (const Features& x : features) rows.push_back(x[static_cast<std::size_t>(e.rows)]);
      if (std::all_of(rows.begin(), rows.end(), [](double count) { return count <= 0; })) continue;
      double total = 0;
      for (const double count : rows) total += count;
      p.experts.push_back(e.side.phases(rows, demand_of(e, total, load), load.link_taken));
      layers += p.experts.back().layers;
    }
    for (ExpertPhases& e : p.experts)
      for (std::size_t r = 0; r < ranks.size(); ++r) e.before_s[r] += own_moe_s[r] / layers;
    return p;
  }

  std::vector<OperatorCost> operators(std::span<const RankBatch> ranks, const ExpertLoad& load) const override {
    const Slowest s = slowest(ranks);
    std::vector<OperatorCost> rows;
    rows.reserve(operators_.size() + ExpertSide::max_rows * experts_.size() + 1);
    double gpu_s = 0;
    std::array<Features, 4> features{};
    for (std::size_t i = 0; i < 4; ++i) map_.compute(*s.batch[i], features[i]);
    for (const Operator& op : operators_) {
      const Features& x = features[static_cast<std::size_t>(source_of(op))];
      const double seconds = op.seconds(x);
      if (seconds == 0) continue;
      gpu_s += seconds;
      const double count = x[static_cast<std::size_t>(op.gate)];
      rows.push_back({op.name, false, group_names[index_of(op.group)], static_cast<int>(std::lround(op.layers)), count, op.shape,
                      !op.exact.empty() && op.exact.share(count) > 0, op.flops(x), op.bytes(x), seconds, op.basis(x), op.family, op.range.exits(op.launch(x))});
    }
    for (const ExpertRows& e : experts_) {
      const auto f = static_cast<std::size_t>(e.rows);
      std::array<ExpertCost, ExpertSide::max_rows> parts;
      const int n = e.side.evaluate(s.largest[f], s.total[f], demand_of(e, s.total[f], load), load.link_taken, parts);
      for (int i = 0; i < n; ++i) {
        const ExpertCost& part = parts[static_cast<std::size_t>(i)];
        gpu_s += e.passes * part.seconds;
        rows.push_back({part.name, e.group == Group::draft, group_names[index_of(e.group)], static_cast<int>(std::lround(e.layers * e.passes)),
                        s.total[f] / (tensor_parallel_ ? 1 : ranks_), "rows a rank", part.exact, e.passes * part.flops, e.passes * part.bytes,
                        e.passes * part.seconds, part.basis, part.family, e.side.exits(part)});
      }
    }
    const double host_s = host_.exposed_s(s.host_s, s.host_behind_s, gpu_s, s.prompts);
    rows.push_back({"host, exposed", false, "host", 1, s.requests, "requests", false, 0, 0, host_s, host_.basis(), "host",
                    host_range_.exits(launch_work(0, 0, 0, 0, s.requests))});
    return rows;
  }

  std::vector<double> expert_layers(std::span<const RankBatch> ranks, const ExpertLoad& load) const override {
    const Slowest s = slowest(ranks);
    std::vector<double> sum;
    for (const ExpertRows& e : experts_) {
      const auto f = static_cast<std::size_t>(e.rows);
      const StepDemand* demand = demand_of(e, s.total[f], load);
      if (e.group != Group::moe || !demand) continue;
      const std::vector<double> one = e.side.layer_seconds(s.largest[f], s.total[f], *demand, load.link_taken);
      sum.resize(std::max(sum.size(), one.size()));
      for (std::size_t i = 0; i < one.size(); ++i) sum[i] += one[i];
    }
    double mean = 0;
    for (const double seconds : sum) mean += seconds / static_cast<double>(sum.size());
    if (mean <= 0) return {};
    for (double& seconds : sum) seconds /= mean;
    return sum;
  }

 private:
  struct Slowest {
    RankTime layers;                       // of the rank with most attention-side time
    double moe_s = 0, head_s = 0, draft_s = 0;  // rank-level operators of these groups, each of its own slowest rank
    double requests = 0;                   // most on one rank
    double host_s = 0, host_behind_s = 0;  // most work of one host
    bool prompts = false;
    std::array<double, row_features> largest{}, total{};
    std::array<const RankBatch*, 4> batch{};  // of the slowest rank by layers, moe, head, draft
  };

  static bool alike(const ExpertRows& a, const ExpertRows& b, const Slowest& s) {
    const auto f = static_cast<std::size_t>(a.rows), g = static_cast<std::size_t>(b.rows);
    return a.group == Group::moe && b.group == Group::moe && s.largest[f] == s.largest[g] && s.total[f] == s.total[g];
  }

  static const StepDemand* demand_of(const ExpertRows& e, double tokens, const ExpertLoad& load) {
    DemandSource* source = e.group == Group::draft ? load.draft : load.main;
    return source && tokens > 0 && e.side.uneven() ? &source->at(tokens) : nullptr;
  }

  static int source_of(const Operator& op) {
    switch (op.group) {
      case Group::moe: return 1;
      case Group::head: return 2;
      case Group::draft: return 3;
      default: return 0;
    }
  }

  RankTime rank_time(const Features& x) const {
    RankTime t = curve_time(x);
    for (const DirectOperator& op : direct_) t.groups[static_cast<std::size_t>(op.group)] += op.seconds(x);
    return t;
  }

  RankTime curve_time(const Features& x) const {
    RankTime t;
    GroupSeconds scratch;
    for (std::size_t f = 0; f < row_features; ++f) {
      if (x[f] <= 0) continue;
      const GroupSeconds& add = curves_[f].at(x[f], f, scratch);
      for (std::size_t g = 0; g < group_count; ++g) t.groups[g] += add[g];
    }
    return t;
  }

  // The maxima over ranks that a step is made of: attention side, and the rank-level operators of three groups.
  static constexpr std::size_t key_count = 4;
  using Keys = std::array<double, key_count>;
  static std::size_t key_of(Group g) { return g == Group::moe ? 1 : g == Group::head ? 2 : g == Group::draft ? 3 : 0; }
  static Keys keys_of(const RankTime& t) {
    return {t.layers_s(), t.groups[index_of(Group::moe)], t.groups[index_of(Group::head)], t.groups[index_of(Group::draft)]};
  }

  // Ranks that can be the slowest by anything: those whose batch no other one's contains. Time grows with requests and
  // with context, since what a query attends is concave in its context.
  void find_candidates(std::span<const RankBatch> ranks) const {
    candidates_.clear();
    std::size_t most_context = 0, most_requests = 0;
    for (std::size_t r = 1; r < ranks.size(); ++r) {
      if (ranks[r].decode_context + ranks[r].prefill_context > ranks[most_context].decode_context + ranks[most_context].prefill_context) most_context = r;
      if (ranks[r].decode_tokens + ranks[r].prefill_tokens > ranks[most_requests].decode_tokens + ranks[most_requests].prefill_tokens) most_requests = r;
    }
    candidates_.push_back(most_context);
    if (most_requests != most_context) candidates_.push_back(most_requests);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (r == most_context || r == most_requests) continue;
      const bool contained = std::any_of(candidates_.begin(), candidates_.end(), [&](std::size_t c) { return contains(ranks[c], ranks[r]); });
      if (!contained) candidates_.push_back(r);
    }
    std::sort(candidates_.begin(), candidates_.end());
  }

  // A prompt is not compared: its queries' mean context may fall as it grows.
  static bool contains(const RankBatch& a, const RankBatch& b) {
    return b.prefill_tokens <= 0 && a.decode_context >= b.decode_context && a.decode_requests >= b.decode_requests &&
           a.decode_tokens >= b.decode_tokens && a.decode_query_context >= b.decode_query_context && a.draft_requests >= b.draft_requests;
  }

  // Of the candidates, those whose time must be known exactly. An upper bound of each costs no powers; the one with the
  // largest bound is computed, and whoever cannot reach it is left out.
  void keep_possible() const {
    const std::size_t count = candidates_.size();
    chosen_.assign(count, 0);
    above_.resize(count);
    std::array<std::size_t, key_count> most{};
    for (std::size_t c = 0; c < count; ++c) {
      RankTime t = curve_time(features_[c]);
      for (const DirectOperator& op : direct_) t.groups[static_cast<std::size_t>(op.group)] += op.seconds_above(features_[c]);
      above_[c] = keys_of(t);
      for (std::size_t k = 0; k < key_count; ++k)
        if (above_[c][k] > above_[most[k]][k]) most[k] = c;
    }
    for (std::size_t k = 0; k < key_count; ++k) {
      chosen_[most[k]] = 1;
      if (!costly_[k]) continue;  // the bound is the time
      const double reached = keys_of(rank_time(features_[most[k]]))[k];
      for (std::size_t c = 0; c < count; ++c)
        if (above_[c][k] > reached) chosen_[c] = 1;
    }
  }

  Slowest slowest(std::span<const RankBatch> ranks) const {
    static constexpr RankBatch idle{};
    Slowest s;
    s.batch.fill(&idle);
    std::array<double, row_features> rows;
    for (const RankBatch& batch : ranks) {
      map_.compute_rows(batch, rows.data());
      s.requests = std::max(s.requests, batch.decode_requests + batch.prefill_requests);
      s.host_s = std::max(s.host_s, host_.work_s(batch));
      s.prompts = s.prompts || batch.prefill_tokens > 0;
      s.host_behind_s = std::max(s.host_behind_s, batch.host_behind_s);
      for (std::size_t f = 0; f < row_features; ++f) {
        s.largest[f] = std::max(s.largest[f], rows[f]);
        s.total[f] += rows[f];
      }
    }
    // A graph has one size on all ranks: rows that pad a rank go through its experts like any other.
    if (const double most = s.largest[static_cast<std::size_t>(Rows::tokens)]; most > 0 && most <= padded_tokens_)
      for (std::size_t f = 0; f < row_features; ++f) s.total[f] = s.largest[f] * static_cast<double>(ranks.size());
    find_candidates(ranks);
    features_.resize(std::max(features_.size(), candidates_.size()));
    for (std::size_t c = 0; c < candidates_.size(); ++c) map_.compute(ranks[candidates_[c]], features_[c]);
    const bool choose = candidates_.size() > 2 && std::find(costly_.begin(), costly_.end(), true) != costly_.end();
    if (choose) keep_possible();
    double layers_s = 0;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      if (choose && !chosen_[c]) continue;
      const RankBatch& batch = ranks[candidates_[c]];
      const RankTime t = rank_time(features_[c]);
      if (t.layers_s() > layers_s) {
        layers_s = t.layers_s();
        s.layers = t;
        s.batch[0] = &batch;
      }
      keep_slower(t.groups[index_of(Group::moe)], s.moe_s, batch, s.batch[1]);
      keep_slower(t.groups[index_of(Group::head)], s.head_s, batch, s.batch[2]);
      keep_slower(t.groups[index_of(Group::draft)], s.draft_s, batch, s.batch[3]);
    }
#ifdef RACKCAST_CHECKS
    if (++steps_ % check_every == 0) check_slowest(ranks, {layers_s, s.moe_s, s.head_s, s.draft_s});
#endif
    return s;
  }

  // Whoever was left out is indeed no slower.
  void check_slowest(std::span<const RankBatch> ranks, const Keys& found) const {
    Features x{};
    for (const RankBatch& batch : ranks) {
      map_.compute(batch, x);
      const Keys keys = keys_of(rank_time(x));
      for (std::size_t k = 0; k < key_count; ++k)
        RACKCAST_CHECK(keys[k] <= found[k] * (1 + 1e-12), "a rank that was left out is the slowest");
    }
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
    draft.redundant_experts = c.draft_redundant_experts;
    const bool block = d.kind == DraftKind::dspark;
    experts_.push_back({ExpertSide(draft, {double(d.stages), d.experts, d.top_k, false}),
                        block ? Rows::draft_tokens : Rows::draft_requests, block ? 1.0 : c.draft_tokens, Group::draft,
                        double(d.stages)});
  }

  void read_host(const StepContext& c) {
    ParameterReader read(c.costs, c.model.name);
    host_ = HostTime(c.host, c.tensor_parallel ? 1 : c.ranks, c.model.layer_count(), read);
    if (const CostRange* range = read.range("host")) host_range_ = *range;
    padded_tokens_ = c.tensor_parallel ? 0 : static_cast<double>(c.host.padded_tokens.count);
  }

  int ranks_;
  bool tensor_parallel_;
  FeatureMap map_;
  std::vector<Operator> operators_;
  std::array<RowCurve, row_features> curves_;
  std::vector<DirectOperator> direct_;
  std::array<bool, key_count> costly_{};  // some time of this key takes powers
  // Of the step that is being computed; a model serves one thread.
  mutable std::vector<std::size_t> candidates_;
  mutable std::vector<Features> features_;  // of the candidates, as the two below
  mutable std::vector<Keys> above_;
  mutable std::vector<char> chosen_;
  static constexpr std::uint64_t check_every = 64;
  mutable std::uint64_t steps_ = 0;
  std::vector<ExpertRows> experts_;
  HostTime host_;
  CostRange host_range_;
  double padded_tokens_ = 0;
};

}  // namespace

std::unique_ptr<StepModel> make_step_model(const StepContext& context) {
  RACKCAST_CHECK(context.ranks > 0, "an engine without ranks");
  if (context.sustained_clock) {
    StepContext burst = context;
    burst.sustained_clock = false;
    StepContext sustained = burst;
    sustained.costs = sustained_costs(context.costs, context.gpu);
    return make_two_clock_model(make_step_model(burst), make_step_model(sustained));
  }
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
  context.gpus_per_node = rack.gpus_per_node;
  context.nvlink_domain = rack.nvlink_domain;
  context.nic_bandwidth = rack.nic_bandwidth;
  context.redundant_experts = deployment.eplb.redundant_experts;
  context.draft_redundant_experts = deployment.eplb.draft_redundant_experts;
  context.draft_tokens = deployment.speculation.draft_tokens;
  context.kv_format = deployment.kv_cache.format;
  context.engram = deployment.engram;
  context.path = engine.path;
  context.link_share = link_share;
  context.host = deployment.host;
  context.sustained_clock = deployment.clock == ClockMode::sustained;
  return make_step_model(context);
}

}  // namespace rackcast
