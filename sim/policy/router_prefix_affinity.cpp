#include "sim/policy/router_policies.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "sim/policy/block_index.hpp"
#include "sim/policy/router_least_loaded.hpp"

namespace rackcast {

namespace {

// The target that holds most of the prompt, unless another one would have it computed load_limit times sooner: counted in
// tokens, what waits there and what must be computed. Others are the least loaded target and, since they can load the
// prompt from host memory, those of the home's group. Looks only where the play (more exactly: its first block) went
// lately, at most four targets.
class PrefixAffinity final : public Router {
 public:
  explicit PrefixAffinity(const RouterOptions& options) : least_(options.balance), load_limit_(options.load_limit) {}

  std::uint32_t pick(const RouteQuery& query, std::span<const TargetLoad> targets, const PrefixView& prefixes) override {
    const std::uint32_t least = least_.pick(query, targets, prefixes);
    if (query.runs.empty()) return least;
    Homes& homes = homes_of(query.play, query.runs.front().first);
    homes.used = ++clock_;
    for (const std::uint32_t target : homes.targets)
      if (target != BlockIndex::none) prefixes.expect(target, query);
    std::uint32_t home = BlockIndex::none, matched = 0;
    for (const std::uint32_t target : homes.targets) {
      if (target == BlockIndex::none || targets[target].down) continue;
      const std::uint32_t tokens = prefixes.matched_tokens(target, query);
      if (tokens > matched || (tokens == matched && tokens > 0 && targets[target].queued_tokens < targets[home].queued_tokens)) {
        home = target;
        matched = tokens;
      }
    }
    const std::uint32_t chosen = home == BlockIndex::none ? least : home_or_other(query, targets, prefixes, home, matched, least);
    remember(homes, chosen);
    return chosen;
  }

 private:
  struct Homes {
    std::uint32_t play = 0, first = 0;
    std::uint64_t used = 0;
    std::array<std::uint32_t, 4> targets{BlockIndex::none, BlockIndex::none, BlockIndex::none, BlockIndex::none};
  };

  std::uint32_t home_or_other(const RouteQuery& query, std::span<const TargetLoad> targets, const PrefixView& prefixes,
                              std::uint32_t home, std::uint32_t matched, std::uint32_t least) const {
    const auto cost = [&](std::uint32_t target, std::uint32_t held) {
      return targets[target].queued_tokens + query.input_tokens - std::min(held, query.input_tokens);
    };
    const double at_home = cost(home, matched);
    // What is queued elsewhere alone may already be too much; then nobody needs to be asked.
    if (at_home <= load_limit_ * targets[least].queued_tokens) return home;
    std::uint32_t neighbour = home;
    for (std::uint32_t t = targets[home].group_begin; t < targets[home].group_end; ++t)
      if (!targets[t].down && targets[t].queued_tokens < targets[neighbour].queued_tokens) neighbour = t;
    std::uint32_t best = home;
    double best_cost = at_home / load_limit_;
    for (const std::uint32_t other : {neighbour, least}) {
      if (other == home) continue;
      const double there = cost(other, prefixes.matched_tokens(other, query));
      if (there >= best_cost) continue;
      best = other;
      best_cost = there;
    }
    return best;
  }

  static void remember(Homes& homes, std::uint32_t target) {
    auto place = std::find(homes.targets.begin(), homes.targets.end(), target);
    if (place == homes.targets.end()) --place;
    std::rotate(homes.targets.begin(), place, place + 1);
    homes.targets.front() = target;
  }

  Homes& homes_of(std::uint32_t play, std::uint32_t first) {
    std::uint32_t i = index_.find(play, first);
    if (i == BlockIndex::none) {
      if (homes_.size() >= most_homes) forget_half();
      i = static_cast<std::uint32_t>(homes_.size());
      homes_.push_back(Homes{.play = play, .first = first});
      index_.insert(play, first, i);
    }
    return homes_[i];
  }

  void forget_half() {
    const auto middle = homes_.begin() + static_cast<std::ptrdiff_t>(homes_.size() / 2);
    std::nth_element(homes_.begin(), middle, homes_.end(), [](const Homes& a, const Homes& b) { return a.used > b.used; });
    homes_.erase(middle, homes_.end());
    index_ = BlockIndex();
    for (std::uint32_t i = 0; i < homes_.size(); ++i) index_.insert(homes_[i].play, homes_[i].first, i);
  }

  static constexpr std::size_t most_homes = std::size_t{1} << 18;
  LeastLoaded least_;
  double load_limit_;
  std::uint64_t clock_ = 0;
  std::vector<Homes> homes_;
  BlockIndex index_;
};

}  // namespace

std::unique_ptr<Router> make_prefix_affinity(const RouterOptions& options) { return std::make_unique<PrefixAffinity>(options); }

}  // namespace rackcast
