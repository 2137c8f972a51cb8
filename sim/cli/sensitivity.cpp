// rackcast sensitivity SCENARIO.yaml: what the answer would be if one thing were faster, one at a time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/base/error.hpp"
#include "sim/cli/option_checks.hpp"
#include "sim/cli/run_many.hpp"
#include "sim/cli/verbs.hpp"
#include "sim/cost/costs.hpp"
#include "sim/engine/result_range.hpp"
#include "sim/spec/scenario.hpp"

namespace rackcast {

namespace {

struct Arguments {
  std::string scenario, metric = "total_tok_s_gpu";
  std::vector<std::string> sets;
  double percent = 10;
  int jobs = 0;
  bool json = false;
};

struct Change {
  std::string name;                // what becomes faster
  std::vector<std::string> sets;
};

using Pools = std::vector<std::pair<std::string, std::string>>;  // deployment.<pool>, its cost file

Pools pools_of(const Scenario& s) {
  Pools pools;
  const auto add = [&](const std::optional<EngineSpec>& spec, const char* name) {
    if (spec && spec->engines > 0) pools.emplace_back(std::string("deployment.") + name, spec->cost.empty() ? s.rack.gpu.name : spec->cost);
  };
  add(s.deployment.prefill, "prefill");
  add(s.deployment.decode, "decode");
  add(s.deployment.aggregated, "aggregated");
  return pools;
}

// The hardware's links and memory, then every family of kernels that a cost file has.
std::vector<Change> changes_of(const Scenario& s, const Catalog& catalog, double percent) {
  const double faster = 1 + percent / 100;
  const Pools pools = pools_of(s);
  for (const auto& [pool, cost] : pools)
    if (cost.find('@') != std::string::npos) throw UserError(pool + ".cost is '" + cost + "'; a sensitivity needs a plain cost file");
  const auto costs_scaled = [&](const std::string& what) {
    std::vector<std::string> sets;
    for (const auto& [pool, cost] : pools) sets.push_back(fmt::format("{}.cost={}@{}*{:.12g}", pool, cost, what, 1 / faster));
    return sets;
  };
  std::vector<Change> changes;
  Change nvlink{"NVLink", costs_scaled("link_gbs")};
  nvlink.sets.push_back(fmt::format("rack.gpu.nvlink_bandwidth={:.12g} GB/s", s.rack.gpu.nvlink_bandwidth.value() * faster / 1e9));
  changes.push_back(nvlink);
  changes.push_back({"HBM bandwidth", costs_scaled("hbm_gbs")});
  changes.push_back({"tensor cores", costs_scaled("mma_tflops")});
  if (s.rack.gpu.host_bandwidth.value() > 0)
    changes.push_back({"link to host memory", {fmt::format("rack.gpu.host_bandwidth={:.12g} GB/s", s.rack.gpu.host_bandwidth.value() * faster / 1e9)}});
  if (s.rack.nic_bandwidth.value() > 0)
    changes.push_back({"network cards", {fmt::format("rack.nic_bandwidth={:.12g} GB/s", s.rack.nic_bandwidth.value() * faster / 1e9)}});
  std::set<std::string> families;
  for (const auto& [pool, cost] : pools) {
    const CostSpec costs = read_costs(catalog, cost);
    for (const auto& [name, family] : costs.families) families.insert(name);
    if (const auto own = costs.models.find(s.model.name); own != costs.models.end())
      for (const auto& [name, family] : own->second.families) families.insert(name);
  }
  for (const std::string& family : families) changes.push_back({"kernels: " + family, costs_scaled(family)});
  return changes;
}

int sensitivity(const Arguments& a, const Catalog& catalog) {
  const Scenario scenario = read_scenario(a.scenario, catalog, a.sets);
  const std::vector<Change> changes = changes_of(scenario, catalog, a.percent);
  const std::string yaml = yaml_of(scenario);
  std::vector<RunRequest> requests{{scenario.name, yaml, {"uncertainty=0"}}};
  for (const Change& change : changes) {
    requests.push_back({scenario.name, yaml, change.sets});
    requests.back().sets.push_back("uncertainty=0");
  }
  const std::vector<RunReply> replies = run_many(requests, catalog, a.jobs, "sensitivity");
  const auto value = [&](const RunReply& reply) {
    if (!reply.error.empty()) throw UserError(reply.error);
    if (!reply.metrics.contains(a.metric) || !reply.metrics[a.metric].is_number()) throw UserError("the run gives no metric '" + a.metric + "'");
    return reply.metrics[a.metric].get<double>();
  };
  const double base = value(replies[0]);
  const double outside = replies[0].metrics.value("outside_range", 0.0);
  std::vector<std::pair<double, std::string>> rows;  // change in percent
  for (std::size_t i = 0; i < changes.size(); ++i) rows.emplace_back(100 * (value(replies[i + 1]) / base - 1), changes[i].name);
  std::stable_sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) { return std::abs(x.first) > std::abs(y.first); });
  if (a.json) {
    nlohmann::ordered_json out{{"metric", a.metric}, {"base", base}, {"faster_percent", a.percent}, {"changes", nlohmann::ordered_json::array()}};
    for (const auto& [percent, name] : rows) out["changes"].push_back({{"what", name}, {"percent", percent}});
    out["outside_range"] = outside;
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  fmt::print("{}: {} is {:.6g}\n{:g}% faster                        {}\n", scenario.name, a.metric, base, a.percent, a.metric);
  for (const auto& [percent, name] : rows) fmt::print("  {:<34} {:>+7.2f}%\n", name, percent);
  if (const std::string remark = range_remark(outside); !remark.empty()) fmt::print("note: {}\n", remark);
  return 0;
}

}  // namespace

Action setup_sensitivity(CLI::App& app, const Program& program) {
  const auto a = std::make_shared<Arguments>();
  app.add_option("SCENARIO", a->scenario, "scenario file")->required()->type_name("");
  app.add_option("--metric", a->metric, "the answer that is watched")->type_name("NAME");
  app.add_option("--faster", a->percent, "by how many percent each thing becomes faster")->check(number_from(0.1, 1000))->type_name("PERCENT");
  app.add_option("--jobs", a->jobs, "processes at once; 0: one a core")->type_name("N");
  app.add_flag("--json", a->json, "print JSON");
  add_sets(app, a->sets);
  return [a, &program] { return sensitivity(*a, program.catalog()); };
}

}  // namespace rackcast
