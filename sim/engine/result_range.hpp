// What of a run left the range of its cost files' points: as JSON, as a share, and as notes for people.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/engine/build.hpp"

namespace rackcast {

// By family: {"family", "share" of the whole, "axes": [{"axis", "reached": [least, most], "points": [least, most]}]}
nlohmann::ordered_json range_json(const RangeTally& tally, double whole);
RangeTally pool_outside(const SimulationOutcome& outcome, std::size_t first_engine, std::size_t engines);
// Of the engines' time, the share in launches that left the range; of the whole run.
double outside_share(const SimulationOutcome& outcome);
// "23.4% of the time is in launches outside the range of the cost files' points"; empty at 0 or less, or where it is unknown.
std::string range_remark(double outside_share);
// One line a pool that left it, and one for hand-overs.
std::vector<std::string> range_notes(const BuiltRun& built, const SimulationOutcome& outcome);

}  // namespace rackcast
