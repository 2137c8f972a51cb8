// The "run" object of the report's page (analysis/report/src/data.ts) from a run's result and what lies beside it.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace rackcast {

nlohmann::ordered_json report_run(const nlohmann::ordered_json& result, const std::string& folder);

}  // namespace rackcast
