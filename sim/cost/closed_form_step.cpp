// A step in closed form: the slowest rank by each side, experts and exchange over all ranks, what the host exposes.
#include "sim/cost/closed_form_step.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/cost/experts.hpp"
#include "sim/cost/host_time.hpp"
#include "sim/cost/shapes.hpp"
#include "sim/cost/slowest_ranks.hpp"

namespace rackcast {

namespace {

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
      : token_ranks_(context.tensor_parallel || !context.whole_experts() ? 1 : context.ranks), rank_times_(context) {
    add_experts(context);
    read_host(context);
  }

  StepTime step(std::span<const RankBatch> ranks, const ExpertLoad& load) const override {
    const Slowest s = rank_times_.find(ranks, host_, padded_tokens_);
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
      rank_times_.map().compute(ranks[r], features[r]);
      const RankTime t = rank_times_.rank_time(features[r]);
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
    const Slowest s = rank_times_.find(ranks, host_, padded_tokens_);
    std::vector<OperatorCost> rows;
    rows.reserve(rank_times_.operators().size() + ExpertSide::max_rows * experts_.size() + 1);
    double gpu_s = 0;
    std::array<Features, 4> features{};
    for (std::size_t i = 0; i < 4; ++i) rank_times_.map().compute(*s.batch[i], features[i]);
    for (const Operator& op : rank_times_.operators()) {
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
                        s.total[f] / token_ranks_, "rows a rank", part.exact, e.passes * part.flops, e.passes * part.bytes,
                        e.passes * part.seconds, part.basis, part.family, e.side.exits(part)});
      }
    }
    const double host_s = host_.exposed_s(s.host_s, s.host_behind_s, gpu_s, s.prompts);
    rows.push_back({"host, exposed", false, "host", 1, s.requests, "requests", false, 0, 0, host_s, host_.basis(), "host",
                    host_range_.exits(launch_work(0, 0, 0, 0, s.requests))});
    return rows;
  }

  std::vector<double> expert_layers(std::span<const RankBatch> ranks, const ExpertLoad& load) const override {
    const Slowest s = rank_times_.find(ranks, host_, padded_tokens_);
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

  int token_ranks_;  // that a layer's tokens are spread over; 1: every rank has all of them
  SlowestRanks rank_times_;
  std::vector<ExpertRows> experts_;
  HostTime host_;
  CostRange host_range_;
  double padded_tokens_ = 0;
};

}  // namespace

std::unique_ptr<StepModel> make_closed_form_step(const StepContext& context) { return std::make_unique<ClosedFormStep>(context); }

}  // namespace rackcast
