// The metrics of a scenario given as text, by name.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/engine/build.hpp"
#include "sim/engine/run.hpp"

namespace rackcast::test {

using Figures = std::map<std::string, double>;

inline const Catalog& shipped() {
  static const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});
  return catalog;
}

inline nlohmann::ordered_json result_of(const std::string& yaml, const std::vector<std::string>& sets = {}) {
  static TraceCache traces;
  return run_scenario(read_scenario(YamlSource{"test", yaml}, shipped(), sets), shipped(), {.out_dir = {}, .progress = {}, .traces = &traces});
}

inline Figures figures_of(const std::string& yaml, const std::vector<std::string>& sets = {}) {
  Figures figures;
  const nlohmann::ordered_json result = result_of(yaml, sets);
  for (const auto& [name, value] : result["metrics"].items())
    if (value.is_number()) figures[name] = value.get<double>();
  return figures;
}

}  // namespace rackcast::test
