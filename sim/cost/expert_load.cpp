#include "sim/cost/expert_load.hpp"

#include <algorithm>

#include "sim/policy/eplb.hpp"

namespace rackcast {

DrawnExperts::DrawnExperts(std::unique_ptr<EplbPlanner> planner, int top_k, ReplicaChoice choice,
                           const ExpertPopularityOptions& popularity, double tokens_per_request, std::uint64_t seed)
    : planner_(std::move(planner)), choice_(choice), tokens_per_request_(std::max(1.0, tokens_per_request)),
      popularity_(popularity, popularity.skew == ExpertSkew::counts ? static_cast<int>(popularity.counts.size()) : layers,
                  planner_->shape().experts, top_k, seed),
      seed_(seed) {
  const std::vector<double> topics(static_cast<std::size_t>(popularity.topics), 1.0 / popularity.topics);
  const bool periodic = planner_->move() != EplbMove::free;  // they start from the checkpoint's order and then move
  for (int l = 0; l < popularity_.layers(); ++l) {
    const std::vector<double> load = popularity_.inclusion(l, topics);
    placements_.push_back(periodic ? planner_->next(load) : planner_->initial(l, load));
  }
}

const StepDemand& DrawnExperts::at(double tokens) {
  StepDemand& step = drawn_[tokens];
  if (step.layers() > 0) return step;
  std::mt19937_64 random(seed_);
  const int requests = std::max(1, static_cast<int>(tokens / tokens_per_request_));
  for (int l = 0; l < popularity_.layers(); ++l)
    for (int draw = 0; draw < draws_per_layer; ++draw) {
      const std::vector<double> counts = popularity_.draw_counts(l, tokens, popularity_.draw_topics(requests, random), random);
      const auto& kept = placements_[static_cast<std::size_t>(l)];
      step.add_layer(rank_demands(planner_->every_step() ? planner_->next(counts) : kept, counts, tokens, popularity_.top_k(), choice_));
    }
  return step;
}

TypicalExperts::TypicalExperts(const StepContext& c, const EplbSpec& eplb, const ExpertPopularityOptions& popularity,
                               double tokens_per_request, std::uint64_t seed, std::vector<ExpertPlacement> table) {
  const bool whole = c.whole_experts() && c.ranks > 1;
  if (!whole && !table.empty()) throw UserError("a placement table is of whole experts on several ranks: this engine has slices of each, or one rank");
  const auto part = [&](int experts, int top_k, int redundant, bool draft, std::vector<ExpertPlacement> layers) {
    const EplbShape shape = whole ? EplbShape{experts, c.ranks, slots_per_rank(experts, c.ranks, redundant), std::max(1, c.ranks / c.gpus_per_node), draft}
                                  : EplbShape{experts, 1, experts, 1, draft};  // one rank stands for all
    return std::make_unique<DrawnExperts>(make_eplb_planner(whole ? eplb : EplbSpec{}, shape, std::move(layers)), top_k, eplb.replica_choice, popularity,
                                          tokens_per_request, seed + (draft ? 1 : 0));
  };
  const ExpertsSpec& e = c.model.experts;
  if (e.count > 0) main_ = part(e.count, e.top_k, c.redundant_experts, false, std::move(table));
  if (c.draft_tokens > 0 && c.model.draft && c.model.draft->experts > 0 && popularity.skew != ExpertSkew::counts)
    draft_ = part(c.model.draft->experts, c.model.draft->top_k, c.draft_redundant_experts, true, {});
}

}  // namespace rackcast
