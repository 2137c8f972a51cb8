#include "sim/trace/chains.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "sim/trace/ideal_cache.hpp"
#include "sim/trace/runs.hpp"

namespace rackcast {
namespace {

constexpr double seam_longest_gap_s = 3600;
constexpr double seam_least_overlap = 0.5;
constexpr std::uint32_t title_longest_output = 64;
constexpr std::int64_t no_request = -1;

struct Fork {
  std::int64_t tail = no_request;  // request that it branched off
  std::uint32_t depth = 0;         // blocks shared with it
  double start_s = 0;
};

struct Growing {
  Chain requests;
  Fork fork;
  bool spliced = false;           // has become part of another chain
  std::int64_t tail = no_request; // last request that has blocks
  std::uint32_t tail_blocks = 0;
};

class Splitter {
 public:
  Splitter(const Trace& trace, std::vector<std::uint32_t> ordered) : trace_(trace), ordered_(std::move(ordered)) {
    const auto [low, high] = std::minmax_element(ordered_.begin(), ordered_.end());
    first_ = *low;
    owner_.resize(*high - *low + 1);
  }

  std::vector<Chain> split() {
    for (const std::uint32_t request : ordered_) place(request);
    join_seams();
    return in_order();
  }

 private:
  const TraceRequest& at(std::int64_t request) const { return trace_.requests[static_cast<std::size_t>(request)]; }
  std::span<const HashRun> runs(std::int64_t request) const { return trace_.runs_of(at(request)); }

  void place(std::uint32_t request) {
    if (chains_.empty()) chains_.emplace_back();
    if (at(request).runs_count == 0) {  // no evidence: it rides with the first chain
      chains_[0].requests.push_back(request);
      owner_[request - first_] = 0;
      return;
    }
    if (const auto chain = extended_by(request)) return append(*chain, request);
    const bool any_tail = std::any_of(chains_.begin(), chains_.end(), [](const Growing& c) { return c.tail != no_request; });
    if (!any_tail) return append(0, request);
    const Fork fork = forked_by(request);
    chains_.emplace_back();
    chains_.back().fork = fork;
    append(chains_.size() - 1, request);
    if (fork.depth > 0) forks_of_[fork.tail].push_back(chains_.size() - 1);
  }

  void append(std::size_t chain, std::uint32_t request) {
    Growing& grown = chains_[chain];
    grown.requests.push_back(request);
    grown.tail = request;
    grown.tail_blocks = block_count(runs(request));
    owner_[request - first_] = chain;
  }

  // The chain with the longest tail that is wholly a prefix of the request, has the same model and has ended.
  std::optional<std::size_t> extended_by(std::uint32_t request) const {
    std::optional<std::size_t> best;
    std::uint32_t best_blocks = 0;
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      const Growing& chain = chains_[c];
      if (chain.tail_blocks <= best_blocks || at(chain.tail).model != at(request).model) continue;
      if (end_of(at(chain.tail)) > at(request).start_s + recorded_epsilon_s) continue;
      if (common_prefix(runs(chain.tail), runs(request)) < chain.tail_blocks) continue;
      best = c;
      best_blocks = chain.tail_blocks;
    }
    return best;
  }

  // The tail with most blocks in common, the longer one on equal terms.
  Fork forked_by(std::uint32_t request) const {
    Fork best{no_request, 0, at(request).start_s};
    std::uint32_t best_blocks = 0;
    for (const Growing& chain : chains_) {
      if (chain.tail == no_request) continue;
      const std::uint32_t depth = common_prefix(runs(chain.tail), runs(request));
      if (depth == 0 || depth < best.depth || (depth == best.depth && chain.tail_blocks <= best_blocks)) continue;
      best.tail = chain.tail;
      best.depth = depth;
      best_blocks = chain.tail_blocks;
    }
    return best;
  }

  void join_seams() {
    std::set<std::int64_t> open;
    for (const auto& [tail, forks] : forks_of_) open.insert(tail);
    while (!open.empty()) {
      const std::int64_t tail = *open.begin();
      open.erase(open.begin());
      if (const std::int64_t moved_to = join_seam(tail); moved_to != no_request) open.insert(moved_to);
    }
  }

  // Lets the best fork off a dead tail continue its chain. Returns the chain's new tail when other forks of the old one
  // now hang on it.
  std::int64_t join_seam(std::int64_t tail) {
    const std::size_t owner = resolve(owner_[static_cast<std::uint32_t>(tail) - first_]);
    if (chains_[owner].tail != tail) return no_request;  // the chain went on: a true fork
    std::vector<std::size_t> forks;
    for (const std::size_t fork : forks_of_[tail])
      if (!chains_[fork].spliced) forks.push_back(fork);
    std::optional<std::size_t> elected;
    for (const std::size_t fork : forks)
      if (may_continue(tail, fork) && (!elected || continues_better(fork, *elected))) elected = fork;
    if (!elected) return no_request;
    splice(*elected, owner);
    return rehang(forks, *elected, owner);
  }

  bool may_continue(std::int64_t tail, std::size_t fork) const {
    const TraceRequest& last = at(tail);
    const TraceRequest& next = at(chains_[fork].requests.front());
    if (chains_[fork].fork.depth == 0 || next.model != last.model) return false;
    const double gap_s = next.start_s - end_of(last);
    if (gap_s < -recorded_epsilon_s) return false;
    const double kept = static_cast<double>(chains_[fork].fork.depth) / block_count(runs(tail));
    return gap_s <= seam_longest_gap_s || kept >= seam_least_overlap;
  }

  bool continues_better(std::size_t a, std::size_t b) const {
    const Fork &x = chains_[a].fork, &y = chains_[b].fork;
    if (x.depth != y.depth) return x.depth > y.depth;
    if (x.start_s != y.start_s) return x.start_s < y.start_s;
    return a < b;
  }

  void splice(std::size_t chain, std::size_t owner) {
    Growing& from = chains_[chain];
    Growing& to = chains_[owner];
    for (const std::uint32_t request : from.requests) owner_[request - first_] = owner;
    to.requests.insert(to.requests.end(), from.requests.begin(), from.requests.end());
    if (from.tail != no_request) {
      to.tail = from.tail;
      to.tail_blocks = from.tail_blocks;
    }
    from.spliced = true;
    part_of_[chain] = owner;
  }

  std::int64_t rehang(const std::vector<std::size_t>& forks, std::size_t elected, std::size_t owner) {
    const std::int64_t tail = chains_[owner].tail;
    bool moved = false;
    for (const std::size_t fork : forks) {
      if (fork == elected) continue;
      const std::uint32_t depth = common_prefix(runs(tail), runs(chains_[fork].requests.front()));
      if (depth == 0) continue;
      chains_[fork].fork.tail = tail;
      chains_[fork].fork.depth = depth;
      forks_of_[tail].push_back(fork);
      moved = true;
    }
    return moved ? tail : no_request;
  }

  std::size_t resolve(std::size_t chain) const {
    for (auto next = part_of_.find(chain); next != part_of_.end(); next = part_of_.find(chain)) chain = next->second;
    return chain;
  }

  std::vector<Chain> in_order() {
    const std::size_t main = resolve(owner_[ordered_.front() - first_]);
    std::vector<std::size_t> others;
    for (std::size_t c = 0; c < chains_.size(); ++c)
      if (!chains_[c].spliced && c != main) others.push_back(c);
    std::stable_sort(others.begin(), others.end(), [this](std::size_t a, std::size_t b) {
      const std::uint32_t x = chains_[a].requests.front(), y = chains_[b].requests.front();
      return at(x).start_s != at(y).start_s ? at(x).start_s < at(y).start_s : x < y;
    });
    std::vector<Chain> split{std::move(chains_[main].requests)};
    for (const std::size_t c : others) split.push_back(std::move(chains_[c].requests));
    return split;
  }

  const Trace& trace_;
  std::vector<std::uint32_t> ordered_;
  std::vector<Growing> chains_;
  std::uint32_t first_ = 0;                                     // lowest request index
  std::vector<std::size_t> owner_;                              // request - first_ -> chain
  std::map<std::int64_t, std::vector<std::size_t>> forks_of_;   // tail request -> chains
  std::map<std::size_t, std::size_t> part_of_;                  // spliced chain -> its owner
};

// True when the first request shares no prefix with any other and is a title or shares no block at all.
bool starts_with_preamble(const Trace& trace, std::span<const std::uint32_t> ordered) {
  if (ordered.size() < 2) return false;
  const TraceRequest& first = trace.requests[ordered[0]];
  if (first.runs_count == 0) return false;
  const std::span<const HashRun> runs = trace.runs_of(first);
  for (const std::uint32_t other : ordered.subspan(1))
    if (common_prefix(runs, trace.runs_of(trace.requests[other])) > 0) return false;
  if (first.output_tokens <= title_longest_output) return true;
  IdealCache others;
  for (const std::uint32_t other : ordered.subspan(1)) others.add(trace.runs_of(trace.requests[other]));
  return !others.touches(runs);
}

}  // namespace

std::vector<Chain> split_chains(const Trace& trace, std::span<const std::uint32_t> requests) {
  if (requests.empty()) return {};
  std::vector<std::uint32_t> ordered(requests.begin(), requests.end());
  std::stable_sort(ordered.begin(), ordered.end(), [&trace](std::uint32_t a, std::uint32_t b) {
    return trace.requests[a].start_s < trace.requests[b].start_s;
  });
  if (!starts_with_preamble(trace, ordered)) return Splitter(trace, std::move(ordered)).split();
  const std::uint32_t preamble = ordered.front();
  ordered.erase(ordered.begin());
  std::vector<Chain> chains = Splitter(trace, std::move(ordered)).split();
  chains[0].insert(chains[0].begin(), preamble);
  return chains;
}

}  // namespace rackcast
