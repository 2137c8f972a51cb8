// A run's result as a person reads it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace rackcast {

std::string run_table(const nlohmann::ordered_json& result);

}  // namespace rackcast
