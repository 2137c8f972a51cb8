// The time series of a run, as `run --time-series` leaves them, for the page.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace rackcast {

// Puts times_s, cache, each engine's series and ranks, and links' series into the page's "run" object. Long series are
// thinned: a sample of the page is then the mean of several. UserError when the file is damaged.
void add_time_series(nlohmann::ordered_json& run, const std::string& path);

}  // namespace rackcast
