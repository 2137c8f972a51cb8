#include "sim/policy/eplb_pack.hpp"

#include <algorithm>
#include <numeric>
#include <queue>

#include "sim/base/error.hpp"

namespace rackcast::eplb {

std::vector<int> replicate(std::span<const double> load, int slots, int most, int only) {
  const int experts = static_cast<int>(load.size());
  RACKCAST_CHECK(slots >= experts && slots <= experts * most, "no room for one replica of every expert");
  std::vector<int> count(load.size(), 1);
  struct Entry {
    double per_replica;
    int expert;
    bool operator<(const Entry& o) const {
      return per_replica != o.per_replica ? per_replica < o.per_replica : expert > o.expert;
    }
  };
  std::vector<Entry> entries;
  entries.reserve(static_cast<std::size_t>(experts));
  for (int e = 0; e < experts; ++e) entries.push_back({load[static_cast<std::size_t>(e)], e});
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return b < a; });
  int spare = slots - experts;
  if (most > 1) entries.erase(entries.begin() + (std::clamp(only, (spare + most - 2) / (most - 1), experts)), entries.end());
  std::priority_queue<Entry> heap(std::less<Entry>(), std::move(entries));
  for (; spare > 0; --spare) {
    const int e = heap.top().expert;
    heap.pop();
    const int now = ++count[static_cast<std::size_t>(e)];
    if (now < most) heap.push({load[static_cast<std::size_t>(e)] / now, e});
  }
  return count;
}

namespace {

// The working state of one packing: who sits where, loads, and how many replicas of an expert a rank holds.
struct Packing {
  int ranks, slots;
  std::span<const double> share;
  std::vector<std::vector<std::uint16_t>> members;
  std::vector<double> load;
  std::vector<std::uint8_t> holds;  // [rank][expert]

  Packing(std::span<const double> s, int r, int n)
      : ranks(r), slots(n), share(s), members(static_cast<std::size_t>(r)), load(static_cast<std::size_t>(r), 0.0),
        holds(static_cast<std::size_t>(r) * s.size(), 0) {
    for (auto& m : members) m.reserve(static_cast<std::size_t>(n));
  }
  std::uint8_t& held(std::size_t rank, std::size_t expert) { return holds[rank * share.size() + expert]; }
  void put(std::size_t rank, std::uint16_t expert) {
    members[rank].push_back(expert);
    load[rank] += share[expert];
    ++held(rank, expert);
  }
  void exchange(std::size_t a, std::size_t i, std::size_t b, std::size_t j) {
    const std::uint16_t from_a = members[a][i], from_b = members[b][j];
    members[a][i] = from_b;
    members[b][j] = from_a;
    load[a] += share[from_b] - share[from_a];
    load[b] += share[from_a] - share[from_b];
    --held(a, from_a);
    ++held(a, from_b);
    --held(b, from_b);
    ++held(b, from_a);
  }
};

// Lightest rank with a free slot that does not hold the expert; else (unavoidable for now) the lightest with a slot.
std::size_t choose_rank(Packing& p, std::uint16_t expert) {
  std::size_t best = p.members.size(), any = p.members.size();
  for (std::size_t r = 0; r < p.members.size(); ++r) {
    if (static_cast<int>(p.members[r].size()) == p.slots) continue;
    if (any == p.members.size() || p.load[r] < p.load[any]) any = r;
    if (p.held(r, expert) == 0 && (best == p.members.size() || p.load[r] < p.load[best])) best = r;
  }
  return best < p.members.size() ? best : any;
}

// Moves second replicas of an expert away from a rank by exchanging them with a slot of a rank that lacks the expert.
void separate(Packing& p) {
  for (std::size_t a = 0; a < p.members.size(); ++a)
    for (std::size_t i = 0; i < p.members[a].size(); ++i) {
      const std::uint16_t expert = p.members[a][i];
      if (p.held(a, expert) < 2) continue;
      std::size_t best_rank = p.members.size(), best_slot = 0;
      double best_gap = 0;
      for (std::size_t b = 0; b < p.members.size(); ++b) {
        if (b == a || p.held(b, expert) > 0) continue;
        for (std::size_t j = 0; j < p.members[b].size(); ++j) {
          if (p.held(a, p.members[b][j]) > 0) continue;
          const double shift = p.share[expert] - p.share[p.members[b][j]];
          const double gap = std::max(p.load[a] - shift, p.load[b] + shift);
          if (best_rank == p.members.size() || gap < best_gap) {
            best_rank = b;
            best_slot = j;
            best_gap = gap;
          }
        }
      }
      if (best_rank < p.members.size()) p.exchange(a, i, best_rank, best_slot);
    }
}

// Exchanges a slot of the heaviest rank with a slot of another so that the heavier of the two gets lightest; stops
// when no exchange helps. Each round lowers the heaviest rank, so it ends; the bound keeps the worst case short.
void improve(Packing& p, int most_rounds) {
  constexpr double good_enough = 1.002;  // of the mean: below what one decode step's draw of tokens blurs
  const double target = good_enough * std::accumulate(p.load.begin(), p.load.end(), 0.0) / static_cast<double>(p.ranks);
  for (int round = 0; round < most_rounds; ++round) {
    const std::size_t a = static_cast<std::size_t>(std::max_element(p.load.begin(), p.load.end()) - p.load.begin());
    if (p.load[a] <= target) return;
    double best = p.load[a] * (1 - 1e-9);
    std::size_t best_i = 0, best_b = p.members.size(), best_j = 0;
    for (std::size_t b = 0; b < p.members.size(); ++b) {
      if (b == a || p.load[b] >= p.load[a]) continue;
      for (std::size_t i = 0; i < p.members[a].size(); ++i)
        for (std::size_t j = 0; j < p.members[b].size(); ++j) {
          const std::uint16_t ea = p.members[a][i], eb = p.members[b][j];
          const double shift = p.share[ea] - p.share[eb];
          if (shift <= 0) continue;
          const double heavier = std::max(p.load[a] - shift, p.load[b] + shift);
          if (heavier >= best || p.held(b, ea) > 0 || p.held(a, eb) > 0) continue;
          best = heavier;
          best_i = i;
          best_b = b;
          best_j = j;
        }
    }
    if (best_b == p.members.size()) return;
    p.exchange(a, best_i, best_b, best_j);
  }
}

}  // namespace

std::vector<std::uint16_t> pack(std::span<const double> share, std::span<const int> replicas, int ranks, int slots) {
  std::vector<std::uint16_t> order(share.size());
  std::iota(order.begin(), order.end(), static_cast<std::uint16_t>(0));
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return share[a] > share[b]; });
  Packing packing(share, ranks, slots);
  for (const std::uint16_t expert : order)
    for (int i = 0; i < replicas[expert]; ++i) packing.put(choose_rank(packing, expert), expert);
  separate(packing);
  improve(packing, 4 * ranks);
  std::vector<std::uint16_t> result;
  result.reserve(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(slots));
  for (auto& members : packing.members) {
    std::sort(members.begin(), members.end());
    result.insert(result.end(), members.begin(), members.end());
  }
  return result;
}

}  // namespace rackcast::eplb
