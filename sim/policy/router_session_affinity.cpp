#include "sim/policy/router_policies.hpp"

#include <vector>

#include "sim/policy/block_index.hpp"
#include "sim/policy/router_least_loaded.hpp"

namespace rackcast {

namespace {

// A lane stays where its first request went. The table is bounded; lanes beyond it share entries.
class SessionAffinity final : public Router {
 public:
  explicit SessionAffinity(BalancePolicy balance) : first_(balance) {}

  std::uint32_t pick(const RouteQuery& query, std::span<const TargetLoad> targets, const PrefixView& prefixes) override {
    constexpr std::uint32_t most = 1U << 20;
    const std::uint32_t slot = query.lane % most;
    if (slot >= home_.size()) home_.resize(std::size_t{slot} + 1, BlockIndex::none);
    if (home_[slot] == BlockIndex::none || targets[home_[slot]].down) home_[slot] = first_.pick(query, targets, prefixes);
    return home_[slot];
  }

 private:
  LeastLoaded first_;
  std::vector<std::uint32_t> home_;
};

}  // namespace

std::unique_ptr<Router> make_session_affinity(const RouterOptions& options) { return std::make_unique<SessionAffinity>(options.balance); }

}  // namespace rackcast
