// A model: shapes, data types, layers by kind, KV layout, draft. Files in scenarios/models/.
#pragma once
#include <string>

#include "sim/base/schema.hpp"

namespace rackcast {

struct ModelSpec {
  std::string name;
  std::string source;
};
void fields(Visitor& v, ModelSpec& m);

}  // namespace rackcast
