// Takes the generator's shape from a trace: percentiles and shares over its streams as the replay sees them.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "sim/base/error.hpp"
#include "sim/trace/chains.hpp"
#include "sim/trace/load_shape.hpp"
#include "sim/trace/runs.hpp"
#include "sim/trace/session_plan.hpp"

namespace rackcast {
namespace {

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_of(std::vector<double> values, double otherwise) {
  if (values.empty()) return otherwise;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Ranks in (0, 1); equal values share their middle.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (std::size_t k = i; k < j; ++k) ranks[order[k]] = (static_cast<double>(i + j)) / 2 / static_cast<double>(order.size());
    i = j;
  }
  return ranks;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 3) return 0;
  const double ma = mean_of(a), mb = mean_of(b);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) { return correlation(ranks_of(a), ranks_of(b)); }

// How alike values of one owner are: the correlation of each value's normal score with its owner's level.
struct Likeness {
  std::vector<double> values;
  std::vector<std::size_t> owners;
  void add(std::size_t owner, double value) {
    values.push_back(value);
    owners.push_back(owner);
  }
  // One-way analysis of variance; the mean score of each owner goes to `levels`.
  double measure(std::map<std::size_t, double>& levels) const {
    const std::vector<double> ranks = ranks_of(values);
    std::map<std::size_t, std::vector<double>> scores;
    for (std::size_t i = 0; i < ranks.size(); ++i) scores[owners[i]].push_back(normal_quantile(std::clamp(ranks[i], 1e-6, 1 - 1e-6)));
    double within = 0, freedom = 0, between = 0, all = 0;
    for (const auto& [owner, own] : scores) {
      const double level = levels[owner] = mean_of(own);
      for (const double score : own) within += (score - level) * (score - level);
      freedom += static_cast<double>(own.size()) - 1;
      between += static_cast<double>(own.size()) * level * level;
      all += static_cast<double>(own.size());
    }
    if (freedom < 1 || scores.size() < 2) return 0;
    const double noise = within / freedom;
    const double spread = between / all - noise * static_cast<double>(scores.size()) / all;
    return std::sqrt(std::clamp(spread / (spread + noise), 0.0, 0.9));
  }
};

struct SessionContext {
  double longest = 0;      // tokens
  bool compacted = false;  // when it got there
};

class Fitter {
 public:
  explicit Fitter(const Trace& trace) : trace_(trace) {}

  LoadShape fit() {
    for (std::size_t s = 0; s < trace_.sessions.size(); ++s) session(s);
    if (turns_.empty()) throw UserError(trace_.source, 0, 0, "", "no session has a request of a main agent to take a shape from");
    shape_.name = "like";
    shape_.sessions = static_cast<std::uint32_t>(turns_.size());
    shape_.block_tokens = trace_.sessions.front().block_tokens;
    main_agents();
    subagents();
    servers();
    return shape_;
  }

 private:
  const TraceRequest& at(const PlanNode& node) const { return trace_.requests[node.request]; }
  std::span<const HashRun> runs(const PlanNode& node) const { return trace_.runs_of(at(node)); }
  double tokens(const PlanNode& node) const { return at(node).input_tokens; }

  void session(std::size_t s) {
    const Session& session = trace_.sessions[s];
    if (session.requests_count == 0) return;
    const SessionPlan plan(trace_, session);
    if (plan.nodes().empty()) return;
    const std::size_t owner = turns_.size();
    block_ = session.block_tokens;
    double turns = 0;
    const TraceRequest* previous = nullptr;
    for (std::uint32_t i = 0; i < session.requests_count; ++i) {
      const TraceRequest& request = trace_.requests[session.requests_begin + i];
      call(request);
      if (request.group >= 0) continue;
      ++turns;
      output_.push_back(request.output_tokens);
      output_likeness_.add(owner, request.output_tokens);
      if (previous) gap_.push_back(std::max(0.0, request.start_s - end_of(*previous)));
      previous = &request;
    }
    turns_.push_back(turns);
    session_ = {longest_input(plan), false};
    longest_ = std::max(longest_, longest_input(plan));
    streams(plan, owner);
    sessions_.push_back(session_);
    groups(plan, session);
  }

  double longest_input(const SessionPlan& plan) const {
    double longest = 0;
    for (const PlanNode& node : plan.nodes()) longest = std::max(longest, tokens(node));
    return longest;
  }

  void call(const TraceRequest& request) {
    if (!(request.api_time_s > 0)) return;
    api_.push_back(request.api_time_s);
    api_output_.push_back(request.output_tokens);
  }

  void streams(const SessionPlan& plan, std::size_t owner) {
    const auto nodes = plan.nodes();
    for (const PlanStream& stream : plan.streams()) {
      const auto own = nodes.subspan(stream.first, stream.count);
      switch (stream.role) {
        case StreamRole::root:
          start_.push_back(tokens(own[0]));
          chain(own, owner);
          break;
        case StreamRole::flat: flat(plan, own, owner); break;
        case StreamRole::subagent: inner_chain(own); break;
        case StreamRole::sibling: sibling(plan, stream, own); break;
      }
    }
  }

  // Turns of a main agent's chain: they extend, compact or rewrite its history.
  void chain(std::span<const PlanNode> own, std::size_t owner) {
    for (std::size_t k = 1; k < own.size(); ++k) {
      const double before = block_count(runs(own[k - 1])), now = block_count(runs(own[k]));
      const double kept = common_prefix(runs(own[k - 1]), runs(own[k]));
      ++steps_;
      if (kept < before && now < 0.8 * before) {
        compacted_.push_back(tokens(own[k]));
        // Near the session's longest context its window was full; further down the user asked for it.
        if (before * block_ > 0.9 * session_.longest) session_.compacted = true;
        else ++free_compactions_;
        if (kept > 0) system_.push_back(kept * block_);
      } else if (kept < before) {
        rewritten_.push_back((before - kept) * block_);
      } else {
        growth_.push_back((now - before) * block_);
        growth_likeness_.add(owner, (now - before) * block_);
      }
    }
  }

  // Undeclared chains: after a long gap a new thread, else a call beside the main one.
  void flat(const SessionPlan& plan, std::span<const PlanNode> own, std::size_t owner) {
    const double deepest = deepest_prefix(plan, own[0]);
    if (own.size() == 1) {
      ++sides_;
      side_sessions_.insert(owner);
      if (deepest > 0.5 * block_count(runs(own[0]))) ++deep_sides_;
      side_.push_back((block_count(runs(own[0])) - deepest) * block_);
      return;
    }
    ++threads_;
    if (deepest > 0.25 * block_count(runs(own[0])) && deepest * block_ > 30e3) ++deep_threads_;
    else thread_start_.push_back(tokens(own[0]));
    chain(own, owner);
  }

  double deepest_prefix(const SessionPlan& plan, const PlanNode& node) const {
    std::uint32_t deepest = 0;
    for (const PlanNode& other : plan.nodes())
      if (other.start_s < node.start_s && other.stream != node.stream) deepest = std::max(deepest, common_prefix(runs(other), runs(node)));
    return deepest;
  }

  void inner_chain(std::span<const PlanNode> own) {
    group_first_.push_back(own[0].request);
    const std::size_t owner = group_first_.size();
    for (std::size_t k = 0; k < own.size(); ++k) {
      group_output_.push_back(at(own[k]).output_tokens);
      group_longest_ = std::max(group_longest_, tokens(own[k]));
      if (k == 0) continue;
      const double before = block_count(runs(own[k - 1])), now = block_count(runs(own[k]));
      if (common_prefix(runs(own[k - 1]), runs(own[k])) == before) {
        group_growth_.push_back((now - before) * block_);
        group_growth_likeness_.add(owner, (now - before) * block_);
      }
      group_gap_.push_back(own[k].delay_s);
    }
  }

  void sibling(const SessionPlan& plan, const PlanStream& stream, std::span<const PlanNode> own) {
    const double deepest = deepest_prefix(plan, own[0]);
    sibling_requests_ += stream.count;
    for (const PlanNode& node : own) group_output_.push_back(at(node).output_tokens);
    sibling_.push_back((block_count(runs(own[0])) - deepest) * block_);
    if (deepest > 0.5 * block_count(runs(own[0]))) ++deep_siblings_;
    sibling_groups_.insert(at(own[0]).group + static_cast<std::int64_t>(turns_.size()) * 1'000'000);
  }

  void groups(const SessionPlan& plan, const Session& session) {
    groups_of_session_.push_back(session.groups_count);
    for (const PlanStream& stream : plan.streams())
      if (stream.role == StreamRole::subagent) {
        ++declared_;
        background_ += stream.join == no_node;
      }
    if (session.groups_count == 0) return;
    std::vector<double> requests(session.groups_count, 0);
    for (std::uint32_t i = 0; i < session.requests_count; ++i)
      if (const std::int32_t group = trace_.requests[session.requests_begin + i].group; group >= 0) ++requests[static_cast<std::size_t>(group)];
    std::vector<std::pair<double, int>> edges;
    for (std::uint32_t g = 0; g < session.groups_count; ++g) {
      const SubagentGroup& group = trace_.groups[session.groups_begin + g];
      const double seconds = std::isnan(group.duration_s) ? 0 : group.duration_s;
      group_requests_.push_back(std::max(1.0, requests[g]));
      group_seconds_.push_back(seconds);
      inner_requests_ += requests[g];
      edges.emplace_back(group.start_s, 1);
      edges.emplace_back(group.start_s + seconds, -1);
    }
    std::sort(edges.begin(), edges.end());
    int alive = 0, most = 0;
    for (const auto& [time, step] : edges) most = std::max(most, alive += step);
    at_once_.push_back(most);
    agent_kinds(plan);
  }

  // Groups whose first requests share a prefix are of one kind; the prefix is the kind's system prompt.
  void agent_kinds(const SessionPlan& plan) {
    std::vector<const PlanNode*> firsts;
    for (const PlanStream& stream : plan.streams())
      if (stream.role == StreamRole::subagent) firsts.push_back(&plan.nodes()[stream.first]);
    double kinds = 0;
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      std::uint32_t shared = 0;
      for (std::size_t j = 0; j < i; ++j) shared = std::max(shared, common_prefix(runs(*firsts[i]), runs(*firsts[j])));
      if (shared > 0) agent_system_.push_back(shared * block_);
      else ++kinds;
    }
    kinds_.push_back(std::max(1.0, kinds));
  }

  void main_agents() {
    shape_.longest_input = longest_;
    shape_.turns = QuantileCurve::of(turns_, 1);
    shape_.start_tokens = QuantileCurve::of(start_, block_);
    shape_.system_tokens = median_of(system_, 0);
    shape_.growth_tokens = QuantileCurve::of(growth_, block_);
    shape_.growth_likeness = likeness(growth_likeness_, shape_.growth_turns_rank);
    shape_.window_tokens = window_curve();
    const double steps = std::max(1.0, steps_);
    shape_.compaction_share = free_compactions_ / steps;
    shape_.compacted_tokens = QuantileCurve::of(compacted_, block_);
    shape_.rewrite_share = static_cast<double>(rewritten_.size()) / steps;
    shape_.rewritten_tokens = QuantileCurve::of(rewritten_, block_);
    shape_.output_tokens = QuantileCurve::of(output_, 1);
    shape_.output_likeness = likeness(output_likeness_, shape_.output_turns_rank);
    shape_.gap_s = QuantileCurve::of(gap_, 0.01);
    const auto long_gaps = std::count_if(gap_.begin(), gap_.end(), [this](double gap) { return gap > shape_.thread_gap_s; });
    shape_.thread_share = long_gaps > 0 ? std::min(1.0, threads_ / static_cast<double>(long_gaps)) : 0;
    shape_.thread_deep_share = threads_ > 0 ? deep_threads_ / threads_ : 0;
    shape_.thread_start_tokens = QuantileCurve::of(thread_start_.empty() ? start_ : thread_start_, block_);
    shape_.side_share = sides_ / std::accumulate(turns_.begin(), turns_.end(), 0.0);
    shape_.side_session_share = std::max(0.01, static_cast<double>(side_sessions_.size()) / static_cast<double>(turns_.size()));
    shape_.side_deep_share = sides_ > 0 ? deep_sides_ / sides_ : 0;
    shape_.side_tokens = QuantileCurve::of(side_, block_);
  }

  // Kaplan and Meier: a session that never compacted has a window longer than its longest context.
  QuantileCurve window_curve() {
    std::sort(sessions_.begin(), sessions_.end(), [](const SessionContext& a, const SessionContext& b) { return a.longest < b.longest; });
    std::vector<QuantileCurve::Knot> knots;
    double longer = 1;
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      if (!sessions_[i].compacted) continue;
      if (knots.empty()) knots.push_back({0, sessions_[i].longest});
      longer *= 1 - 1 / static_cast<double>(sessions_.size() - i);
      if (longer > 1e-3 && 1 - longer > knots.back().share + 1e-3) knots.push_back({1 - longer, sessions_[i].longest});
    }
    if (knots.empty()) knots.push_back({0, longest_});
    knots.push_back({1, longest_});
    return QuantileCurve(std::move(knots));
  }

  double likeness(const Likeness& values, double& turns_rank) const {
    std::map<std::size_t, double> levels;
    const double result = values.measure(levels);
    std::vector<double> turns, level;
    for (const auto& [owner, mean] : levels) {
      turns.push_back(turns_[owner]);
      level.push_back(mean);
    }
    turns_rank = rank_correlation(turns, level);
    return result;
  }

  void subagents() {
    std::vector<double> with, turns_with;
    for (std::size_t s = 0; s < groups_of_session_.size(); ++s)
      if (groups_of_session_[s] > 0) with.push_back(groups_of_session_[s]);
    shape_.group_session_share = static_cast<double>(with.size()) / static_cast<double>(turns_.size());
    shape_.groups = QuantileCurve::of(with, 1);
    shape_.groups_turns_rank = rank_correlation(turns_, groups_of_session_);
    shape_.groups_at_once = QuantileCurve::of(at_once_, 1);
    shape_.group_requests = QuantileCurve::of(group_requests_, 1);
    shape_.group_seconds = QuantileCurve::of(group_seconds_, 0.1);
    shape_.group_seconds_rank = rank_correlation(group_requests_, group_seconds_);
    shape_.sibling_share = inner_requests_ > 0 ? sibling_requests_ / inner_requests_ : 0;
    shape_.sibling_group_share = std::max(0.05, group_requests_.empty() ? 0 : static_cast<double>(sibling_groups_.size()) / static_cast<double>(group_requests_.size()));
    shape_.sibling_deep_share = sibling_.empty() ? 0 : deep_siblings_ / static_cast<double>(sibling_.size());
    shape_.sibling_tokens = QuantileCurve::of(sibling_, block_);
    shape_.agent_kinds = std::max(1.0, mean_of(kinds_));
    shape_.agent_system_tokens = median_of(agent_system_, 0);
    std::vector<double> starts;
    starts.reserve(group_first_.size());
    for (const std::uint32_t request : group_first_)
      starts.push_back(std::max(block_, trace_.requests[request].input_tokens - shape_.agent_system_tokens));
    shape_.group_start_tokens = QuantileCurve::of(starts, block_);
    shape_.group_growth_tokens = QuantileCurve::of(group_growth_, block_);
    std::map<std::size_t, double> levels;
    shape_.group_growth_likeness = group_growth_likeness_.measure(levels);
    shape_.group_window_tokens = std::max(block_, group_longest_);
    shape_.group_output_tokens = QuantileCurve::of(group_output_.empty() ? output_ : group_output_, 1);
    shape_.group_gap_s = QuantileCurve::of(group_gap_, 0.05);
    shape_.background_share = declared_ > 0 ? background_ / declared_ : 0;
  }

  // Least squares of recorded server time on output length.
  void servers() {
    const double mean_time = mean_of(api_), mean_output = mean_of(api_output_);
    double product = 0, square = 0;
    for (std::size_t i = 0; i < api_.size(); ++i) {
      product += (api_output_[i] - mean_output) * (api_[i] - mean_time);
      square += (api_output_[i] - mean_output) * (api_output_[i] - mean_output);
    }
    constexpr double slowest = 5, fastest = 1000;
    if (square > 0 && product > 0) shape_.output_rate_per_s = std::clamp(square / product, slowest, fastest);
    if (!api_.empty()) shape_.first_token_s = std::max(0.1, mean_time - mean_output / shape_.output_rate_per_s);
    std::vector<double> think;
    for (const TraceRequest& request : trace_.requests)
      if (!std::isnan(request.think_time_s)) think.push_back(request.think_time_s);
    const double usual_gap = median_of(gap_, 0);
    shape_.think_share = think.empty() || usual_gap <= 0 ? 1 : median_of(think, 0) / usual_gap;
  }

  const Trace& trace_;
  LoadShape shape_;
  double block_ = 64, longest_ = 0, steps_ = 0, free_compactions_ = 0;
  SessionContext session_;
  std::vector<SessionContext> sessions_;
  std::vector<double> turns_, start_, growth_, compacted_, system_, rewritten_, output_, gap_, thread_start_, side_;
  Likeness growth_likeness_, output_likeness_, group_growth_likeness_;
  double sides_ = 0, deep_sides_ = 0, threads_ = 0, deep_threads_ = 0;
  std::set<std::size_t> side_sessions_;
  std::vector<double> groups_of_session_, at_once_, group_requests_, group_seconds_, kinds_, agent_system_, group_growth_, group_output_, group_gap_, sibling_;
  std::vector<std::uint32_t> group_first_;
  std::set<std::int64_t> sibling_groups_;
  double inner_requests_ = 0, sibling_requests_ = 0, deep_siblings_ = 0, declared_ = 0, background_ = 0, group_longest_ = 0;
  std::vector<double> api_, api_output_;
};

}  // namespace

LoadShape shape_of(const Trace& trace) { return Fitter(trace).fit(); }

}  // namespace rackcast
