#include "sim/policy/router.hpp"

#include "sim/base/error.hpp"
#include "sim/policy/router_least_loaded.hpp"
#include "sim/policy/router_policies.hpp"

namespace rackcast {

std::unique_ptr<Router> make_router(RouterPolicy policy, const RouterOptions& options) {
  switch (policy) {
    case RouterPolicy::round_robin: return make_round_robin();
    case RouterPolicy::least_loaded: return std::make_unique<LeastLoaded>(options.balance);
    case RouterPolicy::session_affinity: return make_session_affinity(options);
    case RouterPolicy::session_hash: return make_session_hash();
    case RouterPolicy::prefix_affinity: return make_prefix_affinity(options);
  }
  throw InternalError("a router without a row in make_router");
}

}  // namespace rackcast
