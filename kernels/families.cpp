#include "kernels/family.hpp"

namespace rackcast::kernels {

std::span<const Family* const> families() {
  static const std::vector<const Family*> all = {
#define RACKCAST_FAMILY(name) &name##_family(),
#include "kernels/families.def"
#undef RACKCAST_FAMILY
  };
  return all;
}

const Family* find_family(std::string_view name) {
  for (const Family* family : families())
    if (family->name() == name) return family;
  return nullptr;
}

}  // namespace rackcast::kernels
