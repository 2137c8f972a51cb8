// The routers of make_router, one file each: router_<name>.cpp.
#pragma once
#include <memory>

#include "sim/policy/router.hpp"

namespace rackcast {

std::unique_ptr<Router> make_round_robin();
std::unique_ptr<Router> make_session_affinity(const RouterOptions& options);
std::unique_ptr<Router> make_session_hash();
std::unique_ptr<Router> make_prefix_affinity(const RouterOptions& options);

}  // namespace rackcast
