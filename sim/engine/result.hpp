// The JSON of one run, from what the simulation gave. Numbers only of simulated things: no wall clock.
#pragma once
#include <nlohmann/json.hpp>

#include "sim/engine/build.hpp"
#include "sim/engine/recorder.hpp"

namespace rackcast {

nlohmann::ordered_json manifest_json(const Scenario& scenario, const BuiltRun& built, const std::string& network);
nlohmann::ordered_json metrics_json(const Metrics& metrics);
nlohmann::ordered_json failures_json(const BuiltRun& built, const SimulationOutcome& outcome);
// "prefill-0", "decode-0": by pool, in the simulation's order.
std::vector<std::string> engine_names(const BuiltRun& built);

nlohmann::ordered_json breakdown_json(const BuiltRun& built, const SimulationOutcome& outcome, const Recorder& recorder,
                                      const Metrics& metrics);

}  // namespace rackcast
