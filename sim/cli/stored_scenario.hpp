// The scenario that an argument names: a file, a folder of `run --out`, or a row of a result store.
#pragma once
#include <string>

#include "sim/base/catalog.hpp"

namespace rackcast {

// RESULTS.sqlite:ID: the row's number, or the first 6 or more digits of its id, as JSON results give it.
YamlSource scenario_source(const std::string& what);

}  // namespace rackcast
