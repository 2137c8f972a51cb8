#include "sim/trace/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "sim/trace/chains.hpp"
#include "sim/trace/ideal_cache.hpp"
#include "sim/trace/runs.hpp"
#include "sim/trace/session_plan.hpp"

namespace rackcast {
namespace {

Distribution distribution_of(std::vector<double>& values) {
  Distribution d;
  d.count = values.size();
  if (values.empty()) return d;
  std::sort(values.begin(), values.end());
  const auto at = [&values](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (values[high] - values[low]) * (place - static_cast<double>(low));
  };
  d.p10 = at(0.1), d.p50 = at(0.5), d.p90 = at(0.9), d.p95 = at(0.95), d.p99 = at(0.99), d.max = values.back();
  d.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return d;
}

double share_over(const std::vector<double>& sorted, double bound) {
  if (sorted.empty()) return 0;
  return static_cast<double>(sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), bound)) / static_cast<double>(sorted.size());
}

struct Samples {
  std::vector<double> input, input_main, input_inner, output, output_main, new_tokens, turns, gaps, think, groups, group_requests, group_minutes,
      at_once;
  double blocks = 0, blocks_held = 0, blocks_of_previous = 0;
};

class Collector {
 public:
  explicit Collector(const Trace& trace) : trace_(trace) {
    samples_.input.reserve(trace.requests.size());
    samples_.output.reserve(trace.requests.size());
    samples_.new_tokens.reserve(trace.requests.size());
  }

  void add(const Session& session) {
    lengths(session);
    reuse(session);
    groups(session);
    // Arrivals of a service are no session tree.
    if (session.requests_count > 0 && !trace_.block_ids_global && has_blocks(session)) trees(session);
  }

  TraceStatistics finish() {
    Samples& s = samples_;
    result_.sessions = trace_.sessions.size();
    result_.requests = trace_.requests.size();
    result_.runs = trace_.runs.size();
    result_.input = distribution_of(s.input);
    result_.input_main = distribution_of(s.input_main);
    result_.input_inner = distribution_of(s.input_inner);
    result_.output = distribution_of(s.output);
    result_.output_main = distribution_of(s.output_main);
    result_.new_tokens = distribution_of(s.new_tokens);
    result_.turns_per_session = distribution_of(s.turns);
    result_.gap_s = distribution_of(s.gaps);
    result_.think_s = distribution_of(s.think);
    result_.gap_over_300_s = share_over(s.gaps, 300);
    result_.gap_over_1800_s = share_over(s.gaps, 1800);
    result_.groups_per_session = distribution_of(s.groups);
    result_.requests_per_group = distribution_of(s.group_requests);
    result_.group_minutes = distribution_of(s.group_minutes);
    result_.groups_at_once = distribution_of(s.at_once);
    result_.hit_ideal = s.blocks > 0 ? s.blocks_held / s.blocks : 0;
    result_.hit_previous = s.blocks > 0 ? s.blocks_of_previous / s.blocks : 0;
    const double tokens = result_.input_tokens + result_.output_tokens;
    result_.output_share = tokens > 0 ? result_.output_tokens / tokens : 0;
    return result_;
  }

 private:
  std::span<const TraceRequest> requests(const Session& session) const {
    return {trace_.requests.data() + session.requests_begin, session.requests_count};
  }

  bool has_blocks(const Session& session) const {
    const auto all = requests(session);
    return std::any_of(all.begin(), all.end(), [](const TraceRequest& request) { return request.runs_count > 0; });
  }

  void lengths(const Session& session) {
    const TraceRequest* previous = nullptr;
    double turns = 0;
    for (const TraceRequest& request : requests(session)) {
      result_.input_tokens += request.input_tokens;
      result_.output_tokens += request.output_tokens;
      samples_.input.push_back(request.input_tokens);
      samples_.output.push_back(request.output_tokens);
      if (!std::isnan(request.think_time_s)) samples_.think.push_back(request.think_time_s);
      if (request.group >= 0) {
        ++result_.inner_requests;
        samples_.input_inner.push_back(request.input_tokens);
        continue;
      }
      ++result_.main_requests;
      ++turns;
      samples_.input_main.push_back(request.input_tokens);
      samples_.output_main.push_back(request.output_tokens);
      if (previous) samples_.gaps.push_back(std::max(0.0, request.start_s - previous->start_s - api_time_of(*previous)));
      previous = &request;
    }
    samples_.turns.push_back(turns);
  }

  void reuse(const Session& session) {
    const auto all = requests(session);
    std::vector<std::uint32_t> order(all.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return all[a].start_s < all[b].start_s; });
    IdealCache own;
    IdealCache& cache = trace_.block_ids_global ? shared_ : own;
    for (const std::uint32_t i : order) {
      const auto runs = trace_.runs_of(all[i]);
      const std::uint32_t held = cache.add(runs);
      samples_.blocks_held += held;
      samples_.blocks += block_count(runs);
      // Whole blocks, as a cache counts; without ids everything is new.
      samples_.new_tokens.push_back(runs.empty() ? all[i].input_tokens
                                                 : static_cast<double>(block_count(runs) - held) * session.block_tokens);
    }
  }

  void groups(const Session& session) {
    if (session.groups_count == 0) return;
    ++result_.sessions_with_groups;
    result_.subagent_groups += session.groups_count;
    samples_.groups.push_back(session.groups_count);
    std::vector<double> inner(session.groups_count, 0);
    for (const TraceRequest& request : requests(session))
      if (request.group >= 0) ++inner[static_cast<std::size_t>(request.group)];
    samples_.group_requests.insert(samples_.group_requests.end(), inner.begin(), inner.end());
    std::vector<std::pair<double, int>> edges;
    for (std::uint32_t g = 0; g < session.groups_count; ++g) {
      const SubagentGroup& group = trace_.groups[session.groups_begin + g];
      const double length_s = std::isnan(group.duration_s) ? 0 : group.duration_s;
      samples_.group_minutes.push_back(length_s / 60);
      edges.emplace_back(group.start_s, 1);
      edges.emplace_back(group.start_s + length_s, -1);
    }
    std::sort(edges.begin(), edges.end());
    int alive = 0, most = 0;
    for (const auto& [time, step] : edges) most = std::max(most, alive += step);
    samples_.at_once.push_back(most);
  }

  void trees(const Session& session) {
    const SessionPlan plan(trace_, session);
    for (const PlanStream& stream : plan.streams()) {
      ++result_.streams;
      result_.subagent_streams += stream.role == StreamRole::subagent;
      result_.sibling_streams += stream.role == StreamRole::sibling;
      result_.flat_streams += stream.role == StreamRole::flat;
      for (std::uint32_t k = 1; k < stream.count; ++k) {
        const TraceRequest& before = trace_.requests[plan.nodes()[stream.first + k - 1].request];
        const TraceRequest& request = trace_.requests[plan.nodes()[stream.first + k].request];
        samples_.blocks_of_previous += common_prefix(trace_.runs_of(before), trace_.runs_of(request));
      }
    }
    for (const PlanNode& node : plan.nodes()) {
      result_.barrier_edges += node.waits_count;
      result_.gated_requests += node.waits_count > 0;
    }
  }

  const Trace& trace_;
  IdealCache shared_;
  Samples samples_;
  TraceStatistics result_;
};

}  // namespace

TraceStatistics statistics_of(const Trace& trace) {
  Collector collector(trace);
  for (const Session& session : trace.sessions) collector.add(session);
  return collector.finish();
}

}  // namespace rackcast
