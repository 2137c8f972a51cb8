// The report: one self-contained HTML page from a template with a JSON object put in. The JSON is escaped so that no
// name in it can end the script element; the page itself shows text as text.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/store.hpp"

namespace rackcast {

// The "sweep" object of analysis/report/src/data.ts from stored results: parameters as axes, what else of the
// deployment differs as scenario columns, metrics rounded to six digits; failed ones with their reason.
nlohmann::ordered_json report_sweep(const std::string& name, const std::vector<StoredResult>& results);

// {"schema": 1, "title", "version"} and the given parts.
nlohmann::ordered_json report_data(const std::string& title, const nlohmann::ordered_json& parts);

// The built page (analysis/report/dist/report.html), linked into the program.
std::string_view report_template();

// Puts the data into the template; UserError when the template has no place for it.
std::string report_page(const std::string& page_template, const nlohmann::ordered_json& data);

}  // namespace rackcast
