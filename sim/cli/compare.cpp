// rackcast compare A B: which change of the scenario gave what. A's scenario is turned into B's one changed group of keys
// at a time, and every state in between is run: the steps add up to the whole difference exactly. A step's size depends
// on the order, which is that of the scenario's keys and is printed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "sim/base/flatten.hpp"
#include "sim/cli/mpi_pool.hpp"
#include "sim/cli/progress.hpp"
#include "sim/cli/stored_scenario.hpp"
#include "sim/cli/verbs.hpp"
#include "sim/engine/result_range.hpp"

namespace rackcast {

namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string from, to;
  std::size_t jobs = 0;
  bool json = false;
};

// Keys that only make sense together: an engine pool, the rack, the model, a price list change as a whole.
std::string group_of(const std::string& key) {
  for (const std::string_view whole : {"rack", "model", "prices.list", "deployment.speculation", "deployment.eplb", "deployment.prefill", "deployment.decode", "deployment.aggregated"})
    if (key.starts_with(whole) && (key.size() == whole.size() || key[whole.size()] == '.')) return std::string(whole);
  return key;
}

struct Change {
  std::string group, text;  // text: what became what
};

std::vector<Change> changes_between(const Scenario& from, const Scenario& to) {
  std::map<std::string, const FlatValue*> before;
  const std::vector<FlatValue> a = flatten_of(from), b = flatten_of(to);
  for (const FlatValue& value : a) before[value.key] = &value;
  std::vector<Change> changes;
  const auto note = [&](const std::string& key, const std::string& text) {
    const std::string group = group_of(key);
    const auto same = std::find_if(changes.begin(), changes.end(), [&](const Change& c) { return c.group == group; });
    if (same == changes.end()) changes.push_back({group, text});
    else if (same->text.size() < 200) same->text += ", " + text;
  };
  for (const FlatValue& value : b) {
    if (value.key == "name") continue;
    const auto old = before.find(value.key);
    const std::string was = old == before.end() || old->second->absent ? "none" : old->second->text, is = value.absent ? "none" : value.text;
    if (was != is) note(value.key, fmt::format("{}: {} -> {}", value.key, was, is));
    if (old != before.end()) before.erase(old);
  }
  for (const auto& [key, value] : before)
    if (key != "name" && !value->absent) note(key, fmt::format("{}: {} -> none", key, value->text));
  return changes;
}

void apply(Scenario& scenario, const Scenario& to, const std::string& group) {
  DeploymentSpec& d = scenario.deployment;
  const DeploymentSpec& t = to.deployment;
  if (group == "rack") scenario.rack = to.rack;
  else if (group == "model") scenario.model = to.model;
  else if (group == "prices.list") scenario.prices.list = to.prices.list;
  else if (group == "deployment.speculation") d.speculation = t.speculation;
  else if (group == "deployment.eplb") d.eplb = t.eplb;
  else if (group == "deployment.prefill") d.prefill = t.prefill;
  else if (group == "deployment.decode") d.decode = t.decode;
  else if (group == "deployment.aggregated") d.aggregated = t.aggregated;
}

// The states between A and B. Steps that cannot stand alone (a pool that only fits with another's change) are joined
// with the next one.
struct Step {
  std::vector<Change> changes;
  Scenario scenario;
};

std::vector<Step> steps_between(const Scenario& from, const Scenario& to, const Catalog& catalog) {
  std::vector<Step> steps{{{}, from}};
  std::vector<Change> pending;
  Scenario state = from;
  std::map<std::string, std::string> sets;
  for (const Change& change : changes_between(from, to)) {
    pending.push_back(change);
    Scenario next = state;
    apply(next, to, change.group);
    try {
      std::vector<std::string> single;
      for (const FlatValue& value : flatten_of(to))
        if (value.key == change.group && !value.absent) single.push_back(value.key + "=" + value.text);
      // Plain keys go through the reader, which also checks the rules between keys.
      next = read_scenario(YamlSource{"between A and B", yaml_of(next)}, catalog, single);
    } catch (const UserError&) {
      apply(state, to, change.group);
      continue;
    }
    state = next;
    steps.push_back({std::move(pending), state});
    pending.clear();
  }
  if (!pending.empty()) steps.push_back({std::move(pending), to});
  else if (steps.size() > 1) steps.back().scenario = to;
  return steps;
}

const char* const shown[] = {"total_tok_s_gpu", "p90_tok_s_user", "ttft_p90_s", "cache_hit_total", "cost_usd_per_mtok"};

int compare(const Arguments& arguments, const Program& program) {
  const Catalog catalog = program.catalog();
  ForkServer server(scenario_runner(catalog));
  const std::vector<Step> steps = steps_between(read_scenario(scenario_source(arguments.from), catalog, {}), read_scenario(scenario_source(arguments.to), catalog, {}), catalog);
  if (steps.size() == 1) throw UserError("the two scenarios are the same, but for their names");
  LocalPool pool(server, arguments.jobs > 0 ? arguments.jobs : default_jobs());
  std::vector<StoredResult> rows(steps.size());
  Progress progress("compare");
  std::size_t next = 0, ended = 0;
  run_batch(
      pool,
      [&]() -> std::optional<BatchJob> {
        if (next == steps.size()) return std::nullopt;
        const std::size_t step = next++;
        const Scenario& scenario = steps[step].scenario;
        return BatchJob{described(scenario, std::to_string(step), step), request_of(scenario), {}};
      },
      [&](StoredResult row) {
        progress.update(static_cast<double>(++ended) / static_cast<double>(steps.size()));
        rows[static_cast<std::size_t>(row.position)] = std::move(row);
      });
  Json out = Json::array();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (rows[i].status != "done") fmt::print(stderr, "rackcast: step {} did not run: {}\n", i, rows[i].error);
    Json changes = Json::array();
    for (const Change& change : steps[i].changes) changes.push_back({{"group", change.group}, {"change", change.text}});
    out.push_back({{"changes", changes}, {"status", rows[i].status}, {"metrics", Json::parse(rows[i].metrics)}});
  }
  if (arguments.json) {
    fmt::print("{}\n", Json{{"steps", out}}.dump(1));
    return 0;
  }
  fmt::print("{:>14} {:>14} {:>10} {:>8} {:>10}  change\n", "tok/s/GPU", "P90 tok/s/user", "TTFT P90", "hits", "USD/Mtok");
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::string text;
    for (const Json& change : out[i]["changes"]) text += (text.empty() ? "" : "; ") + change["change"].get<std::string>();
    std::string line;
    for (const char* name : shown) {
      const auto value = [&](std::size_t k) { return out[k]["metrics"].contains(name) && out[k]["metrics"][name].is_number() ? out[k]["metrics"][name].get<double>() : 0.0; };
      const double change = i > 0 && value(i - 1) != 0 ? 100 * (value(i) / value(i - 1) - 1) : 0;
      line += i == 0 ? fmt::format(" {:>13.4g}", value(0)) : fmt::format(" {:>+12.1f}%", change);
    }
    fmt::print("{}  {}\n", line, i == 0 ? "A: " + arguments.from : text);
  }
  std::string line;
  for (const char* name : shown) line += fmt::format(" {:>13.4g}", out.back()["metrics"].contains(name) && out.back()["metrics"][name].is_number() ? out.back()["metrics"][name].get<double>() : 0.0);
  fmt::print("{}  B: {}\n", line, arguments.to);
  for (const auto& [name, step] : {std::pair{"A", std::size_t{0}}, std::pair{"B", out.size() - 1}}) {
    const Json& metrics = out[step]["metrics"];
    if (const std::string remark = range_remark(metrics.contains("outside_range") ? metrics["outside_range"].get<double>() : 0); !remark.empty()) fmt::print("note: {}: {}\n", name, remark);
  }
  return 0;
}

}  // namespace

Action setup_compare(CLI::App& app, const Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("a", arguments->from, "folder of run --out, RESULTS.sqlite:ID, or a scenario file")->required()->type_name("A");
  app.add_option("b", arguments->to, "the same")->required()->type_name("B");
  app.add_option("--jobs", arguments->jobs, "runs at once (default: the cores)")->check(CLI::Range(0, 4096))->type_name("N");
  app.add_flag("--json", arguments->json, "the steps as one JSON object");
  return [arguments, &program] { return compare(*arguments, program); };
}

}  // namespace rackcast
