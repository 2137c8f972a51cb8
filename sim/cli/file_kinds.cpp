#include "sim/cli/file_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/cli/suite.hpp"
#include "sim/cost/composite_fit.hpp"
#include "sim/cost/costs.hpp"
#include "sim/engine/build.hpp"
#include "sim/spec/plan.hpp"
#include "sim/spec/scenario.hpp"
#include "sim/spec/sweep.hpp"

namespace rackcast {

namespace {

template <class Struct>
void read_plain(const YamlSource& source, const Catalog& catalog, const std::vector<std::string>& sets) {
  std::string folder = std::filesystem::path(source.name).parent_path().filename().string();
  read_yaml_as<Struct>(source, catalog.read_options(sets, folder));
}

void read_whole_scenario(const YamlSource& source, const Catalog& catalog, const std::vector<std::string>& sets) {
  const Scenario scenario = read_scenario(source, catalog, sets);
  try {
    check_run(scenario, catalog);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", source.name, error.what()));
  }
}

void read_sweep(const YamlSource& source, const Catalog& catalog, const std::vector<std::string>& sets) {
  const auto [own, other] = split_sets(sets, {"name", "base", "set", "axes", "conditions", "limits"});
  Space(read_yaml_as<SweepSpec>(source, catalog.read_options(own)).space, source.name, catalog, other);
}

void read_plan(const YamlSource& source, const Catalog& catalog, const std::vector<std::string>& sets) {
  const auto [own, other] = split_sets(sets, {"name", "objective", "constraints", "lanes", "short_run", "long_run", "leaders", "most_runs", "bands", "load",
                                              "base", "set", "axes", "conditions", "limits"});
  Space(read_yaml_as<PlanSpec>(source, catalog.read_options(own)).space, source.name, catalog, other);
}

}  // namespace

std::span<const FileKind> file_kinds() {
  static constexpr FileKind table[] = {
      {"scenario", ".", "", "what to simulate: rack, model, deployment, load", read_whole_scenario, document_of<Scenario>},
      {"gpu", "gpus", "hbm_bandwidth", "a GPU: limits and prices", read_plain<GpuSpec>, document_of<GpuSpec>},
      {"rack", "racks", "gpus_per_node", "how GPUs are put together", read_plain<RackSpec>, document_of<RackSpec>},
      {"model", "models", "kv_formats", "a model: shapes, data types, layers, KV, draft", read_plain<ModelSpec>, document_of<ModelSpec>},
      {"prices", "prices", "peak_hours_utc", "a dated list of token prices", read_plain<PriceList>, document_of<PriceList>},
      {"plan", ".", "objective", "what to make best, within which limits, over which deployments", read_plan, document_of<PlanSpec>},
      {"sweep", ".", "axes", "a base scenario and the axes along which it varies", read_sweep, document_of<SweepSpec>},
      {"suite", "suites", "", "published figures and what reproduces each", read_plain<SuiteSpec>, document_of<SuiteSpec>},
      {"anchors", "published", "anchors", "published step times that composites are solved from", read_plain<StepAnchors>, document_of<StepAnchors>},
      {"costs", "costs", "families", "the parameters of a GPU's cost forms, each with interval, basis and source", read_plain<CostSpec>, document_of<CostSpec>},
  };
  return table;
}

const FileKind& file_kind(std::string_view name) {
  const auto kinds = file_kinds();
  const auto found = std::ranges::find(kinds, name, &FileKind::name);
  if (found != kinds.end()) return *found;
  std::vector<std::string> names;
  for (const FileKind& kind : kinds) names.emplace_back(kind.name);
  const std::string hint = near_match(name, names);
  throw UserError(fmt::format("{} is not a kind of file; {}", quote_input(name), hint.empty() ? fmt::format("the kinds are {}", fmt::join(names, ", ")) : hint));
}

static bool has_root_key(std::string_view text, std::string_view key) {
  const std::string start = fmt::format("{}:", key);
  return text.starts_with(start) || text.find("\n" + start) != std::string_view::npos;
}

const FileKind& kind_of(const YamlSource& source) {
  const std::string folder = std::filesystem::absolute(source.name).parent_path().filename().string();
  for (const FileKind& kind : file_kinds())
    if (kind.folder == folder && kind.folder != ".") return kind;
  for (const FileKind& kind : file_kinds())
    if (!kind.root_key.empty() && has_root_key(source.text, kind.root_key)) return kind;
  return file_kinds().front();
}

}  // namespace rackcast
