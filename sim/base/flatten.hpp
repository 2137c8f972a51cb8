// A struct with fields() as a flat list of values by dotted key, in the order of its fields: for conditions, for result
// tables and for telling two scenarios apart. A group that may be absent and is gives its keys with `absent` set.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/schema.hpp"

namespace rackcast {

struct FlatValue {
  std::string key;               // deployment.prefill.dep, pools[0].count
  std::string text;              // as in YAML
  std::optional<double> number;  // base units for quantities, 0 or 1 for booleans; none for texts, choices and lists
  bool absent = false;
};

std::vector<FlatValue> flatten(const std::function<void(Visitor&)>& walk);

template <class Struct>
std::vector<FlatValue> flatten_of(const Struct& value) {
  Struct copy = value;
  return flatten([&](Visitor& v) { fields(v, copy); });
}

// The value whose key is `name` or ends in ".name"; nullptr if none or more than one does (`why` says which).
const FlatValue* find_flat(const std::vector<FlatValue>& values, std::string_view name, std::string* why = nullptr);

}  // namespace rackcast
