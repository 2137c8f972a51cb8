#include "sim/cli/report_run.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "sim/base/csv.hpp"
#include "sim/cli/report_time_series.hpp"

namespace rackcast {

using Json = nlohmann::ordered_json;

namespace {

constexpr int fewest_bins_per_decade = 4, most_bins_per_decade = 256, wanted_bins = 20;
constexpr std::size_t slowest_shown = 20;

Json number_or(const Json& object, const char* key, double otherwise) {
  return object.contains(key) && object[key].is_number() ? object[key] : Json(otherwise);
}

// Bins that grow by the same factor; the first holds everything at or below the smallest value.
Json histogram(std::vector<double> values, const char* unit) {
  std::erase_if(values, [](double v) { return !(v > 0); });
  if (values.empty()) return nullptr;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  int per_decade = fewest_bins_per_decade;  // finer for a narrow distribution
  while (per_decade < most_bins_per_decade && std::log10(*high / *low) * per_decade < wanted_bins) per_decade *= 2;
  const auto position = [&](double v) { return static_cast<int>(std::floor(std::log10(v) * per_decade)); };
  const int first = position(*low);
  const int bins = std::min(200, position(*high) - first + 1);
  std::vector<int> counts(static_cast<std::size_t>(bins), 0);
  for (const double v : values) {
    const int bin = position(v) - first;
    ++counts[static_cast<std::size_t>(std::clamp(bin, 0, bins - 1))];
  }
  Json edges = Json::array();
  for (int i = 0; i <= bins; ++i) edges.push_back(std::pow(10.0, static_cast<double>(first + i) / per_decade));
  return {{"edges", edges}, {"counts", counts}, {"unit", unit}};
}

// Histograms and the slowest requests from the per-request rows that `run --out` leaves.
void add_requests(Json& run, const std::string& path) {
  const CsvTable t = CsvTable::read(path);
  if (!t.has("arrival_s") || !t.has("first_token_s") || !t.has("finish_s")) return;
  struct Row { double arrival, admitted, prompt_done, first, end; std::string id; };
  std::vector<Row> rows;
  std::vector<double> ttft, itl;
  for (std::size_t i = 0; i < t.rows(); ++i) {
    const double arrival = t.number(i, "arrival_s").value_or(0), first = t.number(i, "first_token_s").value_or(0), end = t.number(i, "finish_s").value_or(0);
    const double output = t.number(i, "output_tokens").value_or(0);
    // A request that was put back or started again may have computed its prompt after its first token.
    const double admitted = std::clamp(t.number(i, "admitted_s").value_or(arrival), arrival, std::max(arrival, first));
    const double prompt_done = std::clamp(t.number(i, "prompt_done_s").value_or(first), admitted, std::max(admitted, first));
    rows.push_back({arrival, admitted, prompt_done, first, end, "lane " + t.text(i, "lane") + " #" + std::to_string(i + 1)});
    ttft.push_back(first - arrival);
    if (output >= 2) itl.push_back((end - first) / (output - 1));
  }
  run["histograms"] = Json::object();
  if (Json h = histogram(std::move(ttft), "s"); !h.is_null()) run["histograms"]["ttft"] = std::move(h);
  if (Json h = histogram(std::move(itl), "s"); !h.is_null()) run["histograms"]["tpot"] = std::move(h);
  const std::size_t shown = std::min(slowest_shown, rows.size());
  std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shown), rows.end(), [](const Row& a, const Row& b) { return a.end - a.arrival > b.end - b.arrival; });
  Json slowest = Json::array();
  for (std::size_t i = 0; i < shown; ++i)
    slowest.push_back({{"id", rows[i].id}, {"arrival_s", rows[i].arrival},
                       {"parts", {{{"name", "queue"}, {"time_s", rows[i].admitted - rows[i].arrival}},
                                  {{"name", "prompt"}, {"time_s", rows[i].prompt_done - rows[i].admitted}},
                                  {{"name", "hand-over"}, {"time_s", rows[i].first - rows[i].prompt_done}},
                                  {{"name", "answer"}, {"time_s", rows[i].end - rows[i].first}}}}});
  run["slowest"] = std::move(slowest);
}

// One entry an engine: role, GPUs, and room for what the run recorded of it.
Json engines_of(const Json& breakdown) {
  Json engines = Json::array();
  for (const Json& engine : breakdown.value("engines", Json::array()))
    engines.push_back({{"name", engine["name"]}, {"role", engine["role"]}, {"gpus", engine["gpus"]}, {"utilisation", engine["utilisation"]}, {"series", Json::object()}});
  return engines;
}

// Every GPU of the deployed engines, and the idle ones up to the racks' size.
Json gpus_of(const Json& engines, int rack_gpus, int per_node) {
  std::map<int, Json> gpus;
  for (int id = 0; id < rack_gpus; ++id) gpus[id] = {{"id", id}, {"node", id / per_node}, {"role", "idle"}, {"engine", "none"}, {"utilisation", 0}};
  for (const Json& engine : engines)
    for (const Json& gpu : engine["gpus"]) {
      const int id = gpu.get<int>();
      gpus[id] = {{"id", id}, {"node", id / per_node}, {"role", engine["role"]}, {"engine", engine["name"]}, {"utilisation", engine["utilisation"]}};
    }
  Json list = Json::array();
  for (auto& [id, gpu] : gpus) list.push_back(std::move(gpu));
  return list;
}

}  // namespace

Json report_run(const Json& result, const std::string& folder) {
  const Json breakdown = result.value("breakdown", Json::object()), metrics = result.value("metrics", Json::object());
  Json manifest = result.value("manifest", Json::object());
  manifest.erase("scenario");
  Json run{{"metrics", metrics}, {"manifest", manifest}};
  for (const char* key : {"decode_step", "prefill_token"})
    if (breakdown.contains(key)) run[key] = breakdown[key];
  run["engines"] = engines_of(breakdown);
  run["links"] = breakdown.value("links", Json::array());
  const std::filesystem::path time_series = std::filesystem::path(folder) / "time_series.csv";
  if (std::filesystem::exists(time_series)) add_time_series(run, time_series.string());
  const int rack_gpus = number_or(metrics, "rack_gpus", 0).get<int>();
  constexpr int gpus_in_a_tray = 4;
  const int per_node = rack_gpus % 72 == 0 ? gpus_in_a_tray : 8;
  run["gpus"] = gpus_of(run["engines"], rack_gpus, per_node);
  const std::filesystem::path requests = std::filesystem::path(folder) / "requests.csv";
  if (std::filesystem::exists(requests)) add_requests(run, requests.string());
  return run;
}

}  // namespace rackcast
