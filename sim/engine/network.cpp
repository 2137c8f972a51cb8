#include "sim/engine/network.hpp"

#include "sim/base/error.hpp"

namespace rackcast {

std::unique_ptr<Network> make_network(NetworkKind kind) {
  switch (kind) {
    case NetworkKind::simgrid: return make_simgrid_network();
    case NetworkKind::fluid: return make_fluid_network();
  }
  RACKCAST_CHECK(false, "unknown network kind");
  return nullptr;
}

}  // namespace rackcast
