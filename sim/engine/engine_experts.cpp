#include "sim/engine/engine_experts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/error.hpp"
#include "sim/base/mix.hpp"
#include "sim/policy/eplb.hpp"

namespace rackcast {

namespace {

constexpr double refreshes_per_drift_time = 10;  // between two, an expert's popularity moves by less than half its drift
constexpr double shortest_refresh_s = 10;        // the popularity's own step
constexpr std::size_t layers_per_redraw = 10;    // swapped in the background before new steps are drawn

std::vector<double> even(int topics) { return std::vector<double>(static_cast<std::size_t>(topics), 1.0 / topics); }

double mean_imbalance(const std::vector<ExpertPlacement>& layers, const std::vector<std::vector<double>>& loads) {
  double sum = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) sum += imbalance(rank_loads(layers[l], loads[l]));
  return sum / static_cast<double>(layers.size());
}

double most_received(const std::vector<ExpertMove>& moves, int ranks) {
  std::vector<double> received(static_cast<std::size_t>(ranks), 0.0);
  for (const ExpertMove& move : moves) received[move.to] += move.experts;
  return *std::max_element(received.begin(), received.end());
}

}  // namespace

Popularities make_popularities(const ExpertOptions& options, std::uint64_t seed) {
  Popularities result;
  for (const ExpertPartOptions& part : options.parts)
    result.push_back(std::make_shared<ExpertPopularity>(part.popularity, part.layers, part.experts, part.top_k, seed + result.size() * 7919));
  return result;
}

std::size_t topic_of_session(std::uint64_t seed, std::uint32_t lane, std::uint32_t play, std::size_t topics) {
  return mixed((seed * golden_step) ^ (std::uint64_t{play} << 32 | lane)) % topics;
}

EngineExperts::EngineExperts(const ExpertOptions& options, const Popularities& popularities, int ranks, int nodes, std::uint64_t seed)
    : options_(options), random_(seed) {
  for (std::size_t p = 0; p < options.parts.size(); ++p) {
    const ExpertPartOptions& o = options.parts[p];
    const int redundant = p == 0 ? options.eplb.redundant_experts : options.eplb.draft_redundant_experts;
    const EplbShape shape{o.experts, ranks, slots_per_rank(o.experts, ranks, redundant), nodes, p > 0};
    Part part;
    part.popularity = popularities[p];
    part.planner = make_eplb_planner(options.eplb, shape, p == 0 ? options.table : std::vector<ExpertPlacement>{});
    part.expert_bytes = o.expert_bytes;
    part.library = std::make_unique<ExpertDemandLibrary>(options.eplb.replica_choice, seed * 31 + p);
    if (o.popularity.drift > 0) refresh_s_ = std::min(refresh_s_, std::max(shortest_refresh_s, o.popularity.drift_time_s / refreshes_per_drift_time));
    parts_.push_back(std::move(part));
    place(p);
  }
  move_ = parts_.front().planner->move();
  check();
}

void EngineExperts::place(std::size_t p) {
  Part& part = parts_[p];
  const std::vector<double> topics = even(options_.parts[p].popularity.topics);
  part.placements.clear();
  for (int l = 0; l < options_.parts[p].layers; ++l) part.placements.push_back(part.planner->initial(l, part.popularity->inclusion(l, topics)));
}

void EngineExperts::restart() {
  if (shareable()) return;  // it comes back as it was
  if (rearrangement_) give_up_rearrangement();
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    place(p);
    parts_[p].window.clear();
  }
  step_ = last_start_ = 0;
  tokens_ = 0;
  next_refresh_s_ = 0;
  topic_sum_.clear();
  rank_loads_.clear();
}

// What had arrived counts as moved, but a part that did not get to its last layer was not rearranged.
void EngineExperts::give_up_rearrangement() {
  Rearrangement& plan = *rearrangement_;
  for (; plan.at < plan.stages.size(); ++plan.at) {
    const Stage& stage = plan.stages[plan.at];
    ExpertPartTotals& totals = parts_[stage.part].totals;
    for (const ExpertMove& move : stage.moves) totals.moved_experts -= move.experts;
    if (!stage.last_of_part) continue;
    --totals.rearrangements;
    totals.imbalance_before -= plan.imbalance_before[stage.part];
    totals.imbalance_after -= plan.imbalance_after[stage.part];
  }
  rearrangement_.reset();
}

bool EngineExperts::shareable() const { return move_ == EplbMove::free; }

void EngineExperts::snapshot(Part& part) {
  Snapshot now{step_, {}};
  std::vector<double> topics = topic_sum_;
  const double steps = std::accumulate(topics.begin(), topics.end(), 0.0);
  if (steps <= 0) topics = even(options_.parts.front().popularity.topics);
  else for (double& share : topics) share /= steps;
  const ExpertPartOptions& o = options_.parts[static_cast<std::size_t>(&part - parts_.data())];
  for (int l = 0; l < o.layers; ++l) now.inclusion.push_back(part.popularity->inclusion(l, topics));
  part.window.push_back(std::move(now));
  const std::uint64_t window = static_cast<std::uint64_t>(options_.eplb.window);
  while (part.window.size() > 1 && part.window[1].first_step + window <= step_) part.window.pop_front();
}

void EngineExperts::refresh(Part& part) {
  rank_loads_.clear();
  ExpertDemandLibrary::Replace replace;
  if (part.planner->every_step()) replace = [&part](std::span<const double> counts) { return part.planner->next(counts); };
  part.library->reset(*part.popularity, part.placements, std::move(replace));
}

ExpertLoad EngineExperts::begin_step(double now_s, double tokens, std::span<const double> topic_requests) {
  tokens_ += tokens;
  const double requests = std::accumulate(topic_requests.begin(), topic_requests.end(), 0.0);
  RACKCAST_CHECK(requests > 0 && topic_requests.size() == topics(), "a step of no request");
  topic_share_.assign(topic_requests.begin(), topic_requests.end());
  topic_sum_.resize(topics());
  for (std::size_t t = 0; t < topics(); ++t) topic_sum_[t] += topic_share_[t] /= requests;
  if (now_s >= next_refresh_s_) {
    for (Part& part : parts_) {
      part.popularity->advance(now_s);
      if (move_ != EplbMove::free) snapshot(part);
      refresh(part);
    }
    topic_sum_.assign(topics(), 0);
    next_refresh_s_ = now_s + refresh_s_;
  }
  ++step_;
  for (Part& part : parts_) part.library->next_step(topic_share_);
  Part& main = parts_.front();
  const ExpertDemand& demand = main.library->at(tokens).mean;
  main.totals.steps += 1;
  main.totals.demand.rows += demand.rows;
  main.totals.demand.touched += demand.touched;
  main.totals.demand.ingress += demand.ingress;
  return peek();
}

ExpertLoad EngineExperts::peek() {
  if (step_ == 0) return {};
  ExpertLoad load{.main = parts_.front().library.get(), .draft = parts_.size() > 1 ? parts_[1].library.get() : nullptr};
  if (rearrangement_ && move_ == EplbMove::background) load.link_taken = rearrangement_->link_taken;
  return load;
}

bool EngineExperts::due() const {
  return move_ != EplbMove::free && !rearrangement_ && step_ > 0 && step_ != last_start_ && parts_.front().planner->due(step_);
}

// Tokens per expert over the window, [experts]: expected ones, plus the noise of their number.
std::vector<double> EngineExperts::window_load(const Part& part, std::size_t layer, double tokens) {
  const std::uint64_t window = std::min(step_, static_cast<std::uint64_t>(options_.eplb.window));
  std::vector<double> load;
  for (std::size_t i = 0; i < part.window.size(); ++i) {
    const std::uint64_t begin = std::max(part.window[i].first_step, step_ - window);
    const std::uint64_t end = i + 1 < part.window.size() ? part.window[i + 1].first_step : step_;
    if (end <= begin) continue;
    const std::vector<double>& inclusion = part.window[i].inclusion[layer];
    load.resize(inclusion.size());
    for (std::size_t e = 0; e < load.size(); ++e) load[e] += static_cast<double>(end - begin) * tokens * inclusion[e];
  }
  std::normal_distribution<double> normal;
  for (double& tokens_here : load) tokens_here = std::max(0.0, tokens_here + std::sqrt(tokens_here) * normal(random_));
  return load;
}

void EngineExperts::plan_part(std::size_t p, Rearrangement& plan) {
  Part& part = parts_[p];
  const double tokens = tokens_ / static_cast<double>(step_);  // a step's, on average
  const EplbCosts costs = part.planner->costs();
  std::vector<std::vector<double>> loads;
  std::vector<ExpertPlacement>& next = plan.next.emplace_back();
  std::vector<std::vector<ExpertMove>> moves;
  for (std::size_t l = 0; l < part.placements.size(); ++l) {
    loads.push_back(window_load(part, l, tokens));
    next.push_back(better_of(part.planner->next(loads.back()), part.placements[l], loads.back()));
    moves.push_back(expert_moves(part.placements[l], next.back()));
    for (const ExpertMove& move : moves.back()) part.totals.moved_experts += move.experts;
  }
  plan.imbalance_before.push_back(mean_imbalance(part.placements, loads));
  plan.imbalance_after.push_back(mean_imbalance(next, loads));
  part.totals.imbalance_before += plan.imbalance_before.back();
  part.totals.imbalance_after += plan.imbalance_after.back();
  ++part.totals.rearrangements;
  const double layers = static_cast<double>(next.size());
  const int ranks = part.planner->shape().ranks;
  if (move_ == EplbMove::stall) {
    const std::vector<ExpertMove> all = merge_moves(moves);
    const double host_s = layers * (costs.plan_s + costs.per_layer_s) + most_received(all, ranks) * costs.per_slot_s;
    plan.stages.push_back({p, 0, next.size(), host_s, all, true});
    return;
  }
  double bytes = 0;
  for (std::size_t l = 0; l < next.size(); ++l) {
    bytes += most_received(moves[l], ranks) * part.expert_bytes;
    plan.stages.push_back({p, l, l + 1, costs.per_layer_s + (l == 0 ? layers * costs.plan_s : 0), moves[l], l + 1 == next.size()});
  }
  // What the exchange of tokens misses on average while layers move: the links are taken only while bytes flow.
  const double flow_s = bytes / (costs.link_share * options_.nvlink_bytes_per_s), host_s = layers * costs.per_layer_s;
  plan.link_taken = std::max(plan.link_taken, costs.link_share * flow_s / std::max(1e-12, flow_s + host_s));
}

void EngineExperts::start(double now_s) {
  RACKCAST_CHECK(due(), "a rearrangement that is not due");
  last_start_ = step_;
  Rearrangement plan;
  plan.part_started_s = now_s;
  for (std::size_t p = 0; p < parts_.size(); ++p) plan_part(p, plan);
  rearrangement_ = std::move(plan);
}

const std::vector<double>& EngineExperts::rank_loads() {
  const Part& part = parts_.front();
  if (!rank_loads_.empty()) return rank_loads_;
  rank_loads_.assign(static_cast<std::size_t>(part.planner->shape().ranks), 0.0);
  if (part.planner->every_step()) {  // placed for every step: always even
    for (double& load : rank_loads_) load = 1;
    return rank_loads_;
  }
  const ExpertPartOptions& o = options_.parts.front();
  const std::vector<double> topics = even(o.popularity.topics);
  for (int l = 0; l < o.layers; ++l) {
    const ExpertPlacement& placement = part.placements[static_cast<std::size_t>(l)];
    const std::vector<double> inclusion = part.popularity->inclusion(l, topics);
    const std::vector<double> loads = options_.eplb.replica_choice == ReplicaChoice::round_robin ? rackcast::rank_loads(placement, inclusion)
                                                                                                 : rank_loads_balanced(placement, inclusion);
    const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / static_cast<double>(loads.size());
    for (std::size_t r = 0; r < loads.size(); ++r) rank_loads_[r] += loads[r] / mean / o.layers;
  }
  return rank_loads_;
}

double EngineExperts::experts_arrived() const {
  double arrived = 0;
  for (const Part& part : parts_) arrived += part.totals.moved_bytes / part.expert_bytes;
  return arrived;
}

double EngineExperts::stage_host_s() const { return rearrangement_->stages[rearrangement_->at].host_s; }
const std::vector<ExpertMove>& EngineExperts::stage_moves() const { return rearrangement_->stages[rearrangement_->at].moves; }
double EngineExperts::stage_expert_bytes() const { return parts_[rearrangement_->stages[rearrangement_->at].part].expert_bytes; }

bool EngineExperts::finish_stage(double now_s) {
  Rearrangement& plan = *rearrangement_;
  const Stage& stage = plan.stages[plan.at];
  Part& part = parts_[stage.part];
  for (const ExpertMove& move : stage.moves) part.totals.moved_bytes += move.experts * part.expert_bytes;
  for (std::size_t l = stage.first_layer; l < stage.end_layer; ++l) part.placements[l] = plan.next[stage.part][l];
  if (stage.last_of_part) {
    part.totals.rearranging_s += now_s - plan.part_started_s;
    plan.part_started_s = now_s;
  }
  if (stage.last_of_part || stage.end_layer % layers_per_redraw == 0) refresh(part);
#ifdef RACKCAST_CHECKS
  check();
#endif
  if (++plan.at < plan.stages.size()) return true;
  rearrangement_.reset();
  return false;
}

void EngineExperts::check() const {
  for (const Part& part : parts_) {
    const EplbShape& shape = part.planner->shape();
    for (const ExpertPlacement& layer : part.placements) {
      RACKCAST_CHECK(layer.slot_expert.size() == static_cast<std::size_t>(shape.ranks * shape.slots), "expert slots got lost");
      for (const int replicas : replica_counts(layer)) RACKCAST_CHECK(replicas >= 1, "an expert got lost");
    }
    RACKCAST_CHECK(rearrangement_ || part.totals.moved_bytes == part.totals.moved_experts * part.expert_bytes, "moved experts got lost");
  }
}

}  // namespace rackcast
