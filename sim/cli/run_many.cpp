#include "sim/cli/run_many.hpp"

#include <algorithm>
#include <thread>

#include "sim/base/error.hpp"
#include "sim/base/fork_server.hpp"
#include "sim/cli/progress.hpp"
#include "sim/engine/run.hpp"

namespace rackcast {

namespace {

constexpr TaskLimits limits{.time_s = 300, .memory_bytes = std::uint64_t{4} << 30};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Request: name, YAML, sets. Reply: the metrics as JSON text.
ForkServer::Prepare prepare(const Catalog& catalog) {
  return [catalog](const Fields& request) -> ForkServer::Task {
    return [catalog, request]() -> Fields {
      const std::vector<std::string> sets(request.begin() + 2, request.end());
      const Scenario scenario = read_scenario(YamlSource{request[0], request[1]}, catalog, sets);
      return {run_scenario(scenario, catalog, {})["metrics"].dump()};
    };
  };
}

}  // namespace

std::vector<RunReply> run_many(const std::vector<RunRequest>& requests, const Catalog& catalog, int jobs, const std::string& what) {
  std::vector<RunReply> replies(requests.size());
  if (requests.empty()) return replies;
  const std::size_t width = jobs > 0 ? static_cast<std::size_t>(jobs) : std::max(1u, std::thread::hardware_concurrency());
  ForkServer server(prepare(catalog));
  Progress progress(what);
  std::size_t sent = 0, ended = 0;
  while (ended < requests.size()) {
    while (sent < requests.size() && server.running() < width) {
      Fields fields{requests[sent].name, requests[sent].yaml};
      fields.insert(fields.end(), requests[sent].sets.begin(), requests[sent].sets.end());
      server.submit(sent, fields, limits);
      ++sent;
    }
    const auto outcome = server.wait(1.0);
    if (!outcome) continue;
    RunReply& reply = replies[outcome->id];
    if (outcome->kind == TaskOutcome::Kind::done) reply.metrics = nlohmann::ordered_json::parse(outcome->fields.at(0));
    else reply.error = outcome->error.empty() ? "the run did not end" : first_line(outcome->error);
    progress.update(static_cast<double>(++ended) / static_cast<double>(requests.size()));
  }
  return replies;
}

}  // namespace rackcast
