// Routers: which DP rank of which engine prefills a request. A target is one DP rank (an engine with tensor parallelism
// is one target). Called once per arrival with a snapshot of every target's load. One router = one file
// router_<name>.cpp and one row of make_router.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "sim/base/hash_run.hpp"
#include "sim/policy/choices.hpp"

namespace rackcast {

struct TargetLoad {
  double queued_tokens = 0;     // prompt tokens that wait to be computed, after expected cache hits
  std::uint32_t requests = 0;   // waiting and running
  std::uint32_t group_begin = 0, group_end = 0;  // targets that can load each other's prompts from host memory; empty: none
  bool down = false;            // takes no requests; the router is not asked when all are
};

struct RouteQuery {
  std::uint32_t lane = 0;
  std::uint32_t play = 0;
  std::span<const HashRun> runs;
  std::uint32_t block_tokens = 64;
  std::uint32_t input_tokens = 0;
};

// What a router may ask about caches: tokens of the prompt that the target holds.
class PrefixView {
 public:
  virtual ~PrefixView() = default;
  virtual std::uint32_t matched_tokens(std::uint32_t target, const RouteQuery& query) const = 0;
  // matched_tokens will be asked soon. Changes nothing but speed.
  virtual void expect(std::uint32_t /*target*/, const RouteQuery& /*query*/) const {}
};

struct RouterOptions {
  BalancePolicy balance = BalancePolicy::tokens;
  double load_limit = 1.5;
};

class Router {
 public:
  virtual ~Router() = default;
  virtual std::uint32_t pick(const RouteQuery& query, std::span<const TargetLoad> targets, const PrefixView& prefixes) = 0;
};

std::unique_ptr<Router> make_router(RouterPolicy policy, const RouterOptions& options);

}  // namespace rackcast
