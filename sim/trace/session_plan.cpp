#include "sim/trace/session_plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/trace/barriers.hpp"
#include "sim/trace/chains.hpp"

namespace rackcast {

// Agents that hang between the same two root turns: they start together.
struct Branch {
  double start_s = 0;
  struct Child {
    Chain requests;
    StreamRole role;
    std::uint32_t scope;
  };
  std::vector<Child> children;
};

class PlanBuilder {
 public:
  PlanBuilder(const Trace& trace, const Session& session, SessionPlan& plan) : trace_(trace), session_(session), plan_(plan) {}

  void build() {
    sort_requests();
    if (main_.empty()) return;
    std::vector<Chain> chains = split_chains(trace_, main_);
    root_ = std::move(chains[0]);
    // By place in the file, which is how a group's position among the turns is known.
    for (std::uint32_t k = 0; k < root_.size(); ++k) by_file_.emplace_back(root_[k], k);
    std::sort(by_file_.begin(), by_file_.end());
    add_groups();
    add_flat({chains.begin() + 1, chains.end()});
    lay_out();
    add_barriers();
    for (const std::uint32_t node : plan_.waits_)
      plan_.wait_places_.push_back({plan_.nodes_[node].stream, node - plan_.streams_[plan_.nodes_[node].stream].first});
    drop_cyclic_barriers();
    cut_segments();
  }

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;  // spawn and join turn, by position in the root chain
  struct Branches {
    std::map<Key, std::size_t> index;
    std::vector<std::pair<Key, Branch>> list;  // in order of first appearance
    Branch& at(Key key, double start_s) {
      const auto [found, fresh] = index.try_emplace(key, list.size());
      if (fresh) list.push_back({key, Branch{start_s, {}}});
      Branch& branch = list[found->second].second;
      branch.start_s = std::min(branch.start_s, start_s);
      return branch;
    }
  };

  const TraceRequest& at(std::uint32_t request) const { return trace_.requests[request]; }

  void sort_requests() {
    inner_.resize(session_.groups_count);
    for (std::uint32_t i = 0; i < session_.requests_count; ++i) {
      const std::uint32_t request = session_.requests_begin + i;
      if (at(request).group < 0) main_.push_back(request);
      else inner_[static_cast<std::size_t>(at(request).group)].push_back(request);
    }
  }

  // The last root turn before the request in the file.
  std::optional<std::uint32_t> turn_before(std::uint32_t request) const {
    std::optional<std::uint32_t> best;
    for (auto it = by_file_.begin(); it != by_file_.end() && it->first < request; ++it)
      if (!best || it->second > *best) best = it->second;
    return best;
  }
  // The first later root turn in the file that started at or after end_s.
  std::uint32_t turn_after(std::uint32_t request, double end_s) const {
    for (auto it = std::upper_bound(by_file_.begin(), by_file_.end(), std::pair{request, no_node}); it != by_file_.end(); ++it)
      if (at(it->first).start_s + recorded_epsilon_s >= end_s) return it->second;
    return no_node;
  }

  void add_groups() {
    Branches branches;
    std::uint32_t scope = 0;
    for (std::uint32_t g = 0; g < session_.groups_count; ++g) {
      if (inner_[g].empty()) continue;
      const SubagentGroup& group = trace_.groups[session_.groups_begin + g];
      const auto spawn = turn_before(inner_[g].front());
      if (!spawn) continue;  // nothing could have started it
      double end_s = group.start_s;
      if (!std::isnan(group.duration_s)) end_s += group.duration_s;
      else for (const std::uint32_t request : inner_[g]) end_s = std::max(end_s, end_of(at(request)));
      Branch& branch = branches.at({*spawn, turn_after(inner_[g].back(), end_s)}, group.start_s);
      ++scope;
      bool first = true;
      for (Chain& chain : split_chains(trace_, inner_[g])) {
        branch.children.push_back({std::move(chain), first ? StreamRole::subagent : StreamRole::sibling, scope});
        first = false;
      }
    }
    take(branches);
  }

  void add_flat(std::vector<Chain> chains) {
    Branches branches;
    for (Chain& chain : chains) {
      double end_s = 0;
      for (const std::uint32_t request : chain) end_s = std::max(end_s, end_of(at(request)));
      const Key key{turn_before(chain.front()).value_or(0), turn_after(chain.front(), end_s)};
      branches.at(key, at(chain.front()).start_s).children.push_back({std::move(chain), StreamRole::flat, 0});
    }
    take(branches);
  }

  void take(Branches& branches) {
    for (auto& [key, branch] : branches.list) branches_.emplace_back(key, std::move(branch));
  }

  void lay_out() {
    add_stream(root_, StreamRole::root, 0);
    for (auto& [key, branch] : branches_) {
      const TraceRequest& spawn = at(root_[key.first]);
      const bool overlaps = api_time_of(spawn) > 0 && branch.start_s < end_of(spawn);
      const double origin_s = overlaps ? spawn.start_s : branch.start_s;
      for (const Branch::Child& child : branch.children) {
        PlanStream& stream = add_stream(child.requests, child.role, child.scope);
        stream.spawn = key.first;
        stream.join = key.second;
        stream.at_issue = overlaps;
        plan_.nodes_[stream.first].delay_s = std::max(0.0, at(child.requests.front()).start_s - origin_s);
      }
    }
    const auto sorted_by = [this](std::uint32_t PlanStream::*node) {
      std::vector<std::uint32_t> order;
      for (std::uint32_t s = 1; s < plan_.streams_.size(); ++s)
        if (plan_.streams_[s].*node != no_node) order.push_back(s);
      std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return plan_.streams_[a].*node < plan_.streams_[b].*node; });
      return order;
    };
    plan_.by_spawn_ = sorted_by(&PlanStream::spawn);
    plan_.by_join_ = sorted_by(&PlanStream::join);
    const auto begins = [this](const std::vector<std::uint32_t>& order, std::uint32_t PlanStream::*node) {
      std::vector<std::uint32_t> begin(root_.size() + 1, 0);
      for (const std::uint32_t s : order) ++begin[plan_.streams_[s].*node + 1];
      for (std::size_t n = 0; n < root_.size(); ++n) begin[n + 1] += begin[n];
      return begin;
    };
    plan_.spawn_begin_ = begins(plan_.by_spawn_, &PlanStream::spawn);
    plan_.join_begin_ = begins(plan_.by_join_, &PlanStream::join);
    plan_.first_start_s_ = INFINITY;
    for (const PlanNode& node : plan_.nodes_) {
      plan_.first_start_s_ = std::min(plan_.first_start_s_, node.start_s);
      plan_.last_start_s_ = std::max(plan_.last_start_s_, node.start_s);
    }
  }

  PlanStream& add_stream(const Chain& chain, StreamRole role, std::uint32_t scope) {
    PlanStream stream;
    stream.first = static_cast<std::uint32_t>(plan_.nodes_.size());
    stream.count = static_cast<std::uint32_t>(chain.size());
    stream.role = role;
    const TraceRequest* previous = nullptr;
    for (const std::uint32_t request : chain) {
      PlanNode node;
      node.request = request;
      node.stream = static_cast<std::uint32_t>(plan_.streams_.size());
      node.start_s = at(request).start_s;
      if (previous) node.delay_s = std::max(0.0, at(request).start_s - previous->start_s - api_time_of(*previous));
      previous = &at(request);
      plan_.nodes_.push_back(node);
    }
    plan_.streams_.push_back(stream);
    scope_of_.push_back(scope);
    return plan_.streams_.back();
  }

  void add_barriers() {
    std::map<std::uint32_t, std::vector<RecordedCall>> scopes;
    for (std::uint32_t n = 0; n < plan_.nodes_.size(); ++n) {
      const PlanNode& node = plan_.nodes_[n];
      scopes[scope_of_[node.stream]].push_back({n, node.stream, node.start_s, end_of(at(node.request))});
    }
    for (const auto& [scope, calls] : scopes) {
      const auto waits = start_barriers(calls);
      for (std::size_t i = 0; i < calls.size(); ++i) {
        PlanNode& node = plan_.nodes_[calls[i].node];
        node.waits_begin = static_cast<std::uint32_t>(plan_.waits_.size());
        node.waits_count = static_cast<std::uint32_t>(waits[i].size());
        plan_.waits_.insert(plan_.waits_.end(), waits[i].begin(), waits[i].end());
      }
    }
  }

  // A record whose group ends before its last request starts can make a turn and a subagent wait for each other. Nodes
  // that no order of completions reaches lose their barriers; spawns and joins alone cannot close a circle.
  void drop_cyclic_barriers() {
    std::vector<std::vector<std::uint32_t>> next(plan_.nodes_.size());
    std::vector<std::uint32_t> open(plan_.nodes_.size(), 0);
    const auto edge = [&](std::uint32_t from, std::uint32_t to) {
      next[from].push_back(to);
      ++open[to];
    };
    for (const PlanStream& stream : plan_.streams_) {
      for (std::uint32_t k = 1; k < stream.count; ++k) edge(stream.first + k - 1, stream.first + k);
      if (stream.spawn != no_node) edge(stream.spawn, stream.first);
      if (stream.join != no_node) edge(stream.first + stream.count - 1, stream.join);
    }
    for (std::uint32_t n = 0; n < plan_.nodes_.size(); ++n)
      for (const std::uint32_t wait : plan_.waits(plan_.nodes_[n])) edge(wait, n);
    std::vector<std::uint32_t> ready;
    for (std::uint32_t n = 0; n < open.size(); ++n)
      if (open[n] == 0) ready.push_back(n);
    std::size_t reached = 0;
    for (; !ready.empty(); ++reached) {
      const std::uint32_t node = ready.back();
      ready.pop_back();
      for (const std::uint32_t after : next[node])
        if (--open[after] == 0) ready.push_back(after);
    }
    if (reached == plan_.nodes_.size()) return;
    for (std::uint32_t n = 0; n < open.size(); ++n)
      if (open[n] > 0) plan_.nodes_[n].waits_count = 0;
  }

  void cut_segments() {
    const std::uint32_t first = session_.requests_begin, count = session_.requests_count;
    plan_.first_run_ = at(first).runs_begin;
    const std::span<const HashRun> runs(trace_.runs.data() + plan_.first_run_,
                                        at(first + count - 1).runs_begin + at(first + count - 1).runs_count - plan_.first_run_);
    std::vector<std::uint32_t>& cuts = plan_.cuts_;
    for (const HashRun& run : runs) {
      cuts.push_back(run.first);
      cuts.push_back(run.first + run.count);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    const auto segment = [&cuts](std::uint32_t id) {
      return static_cast<std::uint32_t>(std::lower_bound(cuts.begin(), cuts.end(), id) - cuts.begin());
    };
    for (const HashRun& run : runs) plan_.segments_.push_back({segment(run.first), segment(run.first + run.count)});
  }

  const Trace& trace_;
  const Session& session_;
  SessionPlan& plan_;
  std::vector<std::uint32_t> main_;
  std::vector<std::vector<std::uint32_t>> inner_;  // by group
  Chain root_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_file_;  // request, position in the root chain
  std::vector<std::pair<Key, Branch>> branches_;
  std::vector<std::uint32_t> scope_of_;  // by stream
};

SessionPlan::SessionPlan(const Trace& trace, const Session& session) : session_(&session) {
  PlanBuilder(trace, session, *this).build();
}

static std::span<const std::uint32_t> streams_of(const std::vector<std::uint32_t>& order, const std::vector<std::uint32_t>& begin, std::uint32_t node) {
  if (node + 1 >= begin.size()) return {};  // only turns of the root have any
  return {order.data() + begin[node], begin[node + 1] - begin[node]};
}

std::span<const std::uint32_t> SessionPlan::spawned_by(std::uint32_t node) const { return streams_of(by_spawn_, spawn_begin_, node); }
std::span<const std::uint32_t> SessionPlan::joined_by(std::uint32_t node) const { return streams_of(by_join_, join_begin_, node); }

std::span<const SegmentRange> SessionPlan::segments(const TraceRequest& request) const {
  return {segments_.data() + (request.runs_begin - first_run_), request.runs_count};
}

}  // namespace rackcast
