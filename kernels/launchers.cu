#include "kernels/launcher.hpp"

namespace rackcast::kernels {

#define RACKCAST_FAMILY(name) const Launcher& name##_launcher();
#include "kernels/families.def"
#undef RACKCAST_FAMILY

std::span<const Launcher* const> launchers() {
  static const std::vector<const Launcher*> all = {
#define RACKCAST_FAMILY(name) &name##_launcher(),
#include "kernels/families.def"
#undef RACKCAST_FAMILY
  };
  return all;
}

}  // namespace rackcast::kernels
