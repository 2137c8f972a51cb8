#include "sim/cli/report_time_series.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/csv.hpp"

namespace rackcast {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t most_samples = 360;      // more than a chart has room for
constexpr const char* cache_prefix = "cache.";

double rounded(double value) { return std::round(value * 1e6) / 1e6; }

// Means (or sums) over groups of `step` samples; a group without any value is null.
Json thinned(const CsvTable& t, const std::string& column, std::size_t step, bool sums = false) {
  Json values = Json::array();
  for (std::size_t begin = 0; begin < t.rows(); begin += step) {
    double sum = 0;
    int count = 0;
    for (std::size_t i = begin; i < std::min(begin + step, t.rows()); ++i)
      if (const std::optional<double> value = t.number(i, column)) {
        sum += *value;
        ++count;
      }
    values.push_back(count > 0 ? Json(rounded(sums ? sum : sum / count)) : Json(nullptr));
  }
  return values;
}

bool is_rank(const std::string& text) { return text.size() > 1 && text[0] == 'r' && text.find_first_not_of("0123456789", 1) == std::string::npos; }

Json* named(Json& list, const std::string& name) {
  for (Json& one : list)
    if (one["name"] == name) return &one;
  return nullptr;
}

}  // namespace

void add_time_series(Json& run, const std::string& path) {
  const CsvTable t = CsvTable::read(path);
  t.require({"time_s"});
  const std::size_t step = (t.rows() + most_samples - 1) / most_samples;
  if (t.rows() == 0) return;
  run["times_s"] = thinned(t, "time_s", step);
  run["cache"] = Json::object();
  for (const std::string& column : t.columns()) {
    const std::size_t dot = column.find('.');
    if (dot == std::string::npos) continue;
    const std::string owner = column.substr(0, dot), rest = column.substr(dot + 1);
    if (owner + "." == cache_prefix) {
      run["cache"][rest] = thinned(t, column, step);
    } else if (Json* link = named(run["links"], owner + " " + rest)) {  // links that carried nothing are not in the list
      (*link)["series"] = thinned(t, column, step);
    } else if (Json* engine = named(run["engines"], owner)) {
      const std::size_t last = rest.rfind('.');
      if (last != std::string::npos && is_rank(rest.substr(last + 1))) (*engine)["ranks"][rest.substr(0, last)].push_back(thinned(t, column, step));
      else if (rest.find(' ') == std::string::npos) (*engine)["series"][rest] = thinned(t, column, step, rest == "experts_moved");
    }
  }
}

}  // namespace rackcast
