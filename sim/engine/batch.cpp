#include "sim/engine/batch.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/base/flatten.hpp"
#include "sim/base/text.hpp"
#include "sim/engine/build.hpp"
#include "sim/engine/run.hpp"

namespace rackcast {
namespace {

using Json = nlohmann::ordered_json;

// Two 64-bit hashes of one pass: FNV-1a and a multiply-rotate of another kind; together 128 bits.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      first_ = (first_ ^ byte) * 0x100000001b3ULL;
      second_ = (second_ + byte + 1) * 0x9e3779b97f4a7c15ULL;
      second_ ^= second_ >> 29;
    }
    add_end();
  }
  std::string hex() const { return fmt::format("{:016x}{:016x}", first_, second_); }

 private:
  void add_end() { first_ = (first_ ^ 0x100) * 0x100000001b3ULL; }  // "ab","c" is not "a","bc"
  std::uint64_t first_ = 0xcbf29ce484222325ULL, second_ = 0x84222325cbf29ce4ULL;
};

Json json_of(const FlatValue& value) {
  if (value.text == "true" || value.text == "false") return value.text == "true";
  if (const Parsed<std::int64_t> whole = parse_int64(value.text)) return whole.value;
  if (value.number && *value.number == std::floor(*value.number) && value.text.find(' ') == std::string::npos)
    return static_cast<std::int64_t>(*value.number);  // 16K
  if (value.number && parse_double(value.text)) return *value.number;
  return value.text;  // quantities keep their unit
}

}  // namespace

Fields request_of(const Scenario& scenario) { return {yaml_of(scenario)}; }

ForkServer::Prepare scenario_runner(const Catalog& catalog) {
  const auto traces = std::make_shared<TraceCache>();
  return [&catalog, traces](const Fields& request) -> ForkServer::Task {
    auto scenario = std::make_shared<const Scenario>(read_scenario(YamlSource{"resolved scenario", request.at(0)}, catalog, {}));
    traces->prepare(*scenario);
    return [scenario, &catalog, traces]() -> Fields {
      const Json result = run_scenario(*scenario, catalog, {.out_dir = {}, .progress = {}, .traces = traces.get()});
      return {result.at("metrics").dump(), result.at("manifest").dump(), result.at("breakdown").dump()};
    };
  };
}

std::string content_key(const Scenario& scenario, const Catalog& catalog) {
  Hash hash;
  hash.add(RACKCAST_VERSION);
  Scenario nameless = scenario;
  nameless.name.clear();
  hash.add(yaml_of(nameless));
  std::set<std::string> costs;
  for (const auto& pool : {scenario.deployment.prefill, scenario.deployment.decode, scenario.deployment.aggregated})
    if (pool) costs.insert(pool->cost.empty() ? scenario.rack.gpu.name : pool->cost);
  static std::map<std::string, std::string> texts;  // one reading a file and process
  for (const std::string& name : costs) {
    if (!texts.contains(name)) texts[name] = catalog.find("costs", name).text;
    hash.add(texts[name]);
  }
  std::error_code code;
  for (const WorkloadSpec& part : parts_of(scenario.workload))
    if (const std::filesystem::path trace = trace_path(part.trace);  // the recorded sessions may be absent
        std::filesystem::is_regular_file(trace, code)) hash.add(fmt::format("{} {}", trace.filename().string(), std::filesystem::file_size(trace, code)));
  return hash.hex();
}

StoredResult described(const Scenario& scenario, std::string key, std::uint64_t position) {
  StoredResult row;
  row.key = std::move(key);
  row.position = static_cast<std::int64_t>(position);
  row.name = scenario.name;
  row.scenario = yaml_of(scenario);
  Json parameters = Json::object(), deployment = Json::object();
  for (const FlatValue& value : flatten_of(scenario)) {
    if (value.absent || value.key.starts_with("model.") || value.key.starts_with("prices.list.")) continue;
    parameters[value.key] = json_of(value);
    constexpr std::string_view prefix = "deployment.";
    if (!value.key.starts_with(prefix)) continue;
    std::string pointer = "/" + value.key.substr(prefix.size());
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    deployment[Json::json_pointer(pointer)] = json_of(value);
  }
  parameters["model"] = scenario.model.name;
  deployment["gpus"] = scenario.deployment.gpus();
  row.parameters = parameters.dump();
  row.deployment = deployment.dump();
  row.metrics = row.manifest = row.breakdown = "{}";
  return row;
}

void settle(StoredResult& row, const TaskOutcome& outcome) {
  row.seconds = outcome.seconds;
  row.peak_bytes = outcome.peak_bytes;
  row.error = outcome.error;
  if (outcome.kind == TaskOutcome::Kind::done) {
    row.status = "done";
    row.metrics = outcome.fields.at(0);
    row.manifest = outcome.fields.at(1);
    row.breakdown = outcome.fields.at(2);
  } else {
    row.status = outcome.kind == TaskOutcome::Kind::refused ? "refused" : "error";
  }
}

void run_batch(Pool& pool, const std::function<std::optional<BatchJob>()>& next, const std::function<void(StoredResult)>& ended) {
  std::map<std::uint64_t, StoredResult> running;
  std::uint64_t id = 0;
  bool more = true;
  while (more || !running.empty()) {
    while (more && running.size() < pool.slots()) {
      std::optional<BatchJob> job = next();
      more = job.has_value();
      if (!more) break;
      running.emplace(id, std::move(job->row));
      pool.submit(id++, job->request, job->limits);
    }
    if (running.empty()) break;
    if (const auto outcome = pool.wait(3600)) {
      auto row = running.extract(outcome->id);
      RACKCAST_CHECK(!row.empty(), "an outcome of no task");
      settle(row.mapped(), *outcome);
      ended(std::move(row.mapped()));
    }
  }
}

std::string result_json(const StoredResult& row, const std::vector<std::pair<std::string, std::string>>& axes) {
  Json out{{"id", row.key}, {"name", row.name}, {"status", row.status}};
  if (!row.error.empty()) out["error"] = row.error;
  out["axes"] = Json::object();
  for (const auto& [key, value] : axes) out["axes"][key] = json_of({key, value, parse_double(value) ? std::optional(parse_double(value).value) : std::nullopt, false});
  out["deployment"] = Json::parse(row.deployment);
  out["metrics"] = Json::parse(row.metrics);
  return out.dump();
}

}  // namespace rackcast
