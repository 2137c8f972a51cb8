// rackcast list gpus|racks|models|prices|costs|policies|traces|suites: what can be named in a scenario.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/base/text_table.hpp"
#include "sim/cli/verbs.hpp"
#include "sim/cost/costs.hpp"
#include "sim/spec/scenario.hpp"

namespace rackcast {

namespace {

struct Listing {
  std::vector<std::string> header;  // '>' before right-aligned columns
  std::vector<std::vector<std::string>> rows;
};

template <class Struct>
Struct read_named(const Catalog& catalog, const std::string& kind, const std::string& name) {
  return read_yaml_as<Struct>(catalog.find(kind, name), catalog.read_options({}, kind));
}

std::string in(double value, double unit, const char* format = "{:.4g}") { return fmt::format(fmt::runtime(format), value / unit); }

Listing gpus(const Catalog& catalog) {
  Listing out{{"name", ">memory_GiB", ">hbm_TB_s", ">bf16_PFLOPS", ">fp8_PFLOPS", ">fp4_PFLOPS", ">nvlink_GB_s", ">owning_USD_h", ">rental_USD_h", ">kW", "priced"}, {}};
  for (const std::string& name : catalog.names("gpus")) {
    const auto g = read_named<GpuSpec>(catalog, "gpus", name);
    out.rows.push_back({g.name, in(g.memory.value(), 0x1p30), in(g.hbm_bandwidth.value(), 1e12), in(g.bf16.value(), 1e15), in(g.fp8.value(), 1e15),
                        in(g.fp4.value(), 1e15), in(g.nvlink_bandwidth.value(), 1e9), in(g.owning_price.value(), 1.0 / 3600),
                        in(g.rental_price.value(), 1.0 / 3600), in(g.power.value(), 1e3), g.price_source});
  }
  return out;
}

Listing racks(const Catalog& catalog) {
  Listing out{{"name", "gpu", ">gpus", ">gpus_per_node", ">nvlink_domain", ">nic_GB_s", ">host_memory_GB", ">host_tier_GiB"}, {}};
  for (const std::string& name : catalog.names("racks")) {
    const auto r = read_named<RackSpec>(catalog, "racks", name);
    out.rows.push_back({r.name, r.gpu.name, fmt::format("{}", r.gpus), fmt::format("{}", r.gpus_per_node), fmt::format("{}", r.nvlink_domain),
                        in(r.nic_bandwidth.value(), 1e9), in(r.host_memory_per_node.value(), 1e9), in(r.host_tier_per_node.value(), 0x1p30)});
  }
  return out;
}

Listing models(const Catalog& catalog) {
  Listing out{{"name", "source"}, {}};
  for (const std::string& name : catalog.names("models")) out.rows.push_back({name, read_named<ModelSpec>(catalog, "models", name).source});
  return out;
}

Listing prices(const Catalog& catalog) {
  Listing out{{"name", "models", "source"}, {}};
  for (const std::string& name : catalog.names("prices")) {
    const auto list = read_named<PriceList>(catalog, "prices", name);
    std::string models;
    for (const auto& [model, price] : list.models) models += (models.empty() ? "" : ", ") + model;
    out.rows.push_back({list.name, models, list.source});
  }
  return out;
}

Listing costs(const Catalog& catalog) {
  Listing out{{"name", "gpu", ">parameters", ">measured", ">published", ">transferred", ">assumed"}, {}};
  for (const std::string& name : catalog.names("costs")) {
    const auto spec = read_named<CostSpec>(catalog, "costs", name);
    int of_basis[4] = {}, all = 0;
    const auto count = [&](const std::map<std::string, CostFamily>& families) {
      for (const auto& [family, content] : families)
        for (const auto& [parameter, value] : content.parameters) ++all, ++of_basis[static_cast<int>(value.basis)];
    };
    count(spec.families);
    for (const auto& [model, overrides] : spec.models) count(overrides.families);
    out.rows.push_back({spec.name, spec.gpu, fmt::format("{}", all), fmt::format("{}", of_basis[0]), fmt::format("{}", of_basis[1]),
                        fmt::format("{}", of_basis[2]), fmt::format("{}", of_basis[3])});
  }
  return out;
}

Listing policies(const Catalog&) {
  const std::pair<const char*, const std::vector<Choice>*> all[] = {
      {"deployment.router.policy", &router_policies}, {"deployment.router.balance", &balance_policies},
      {"deployment.kv_cache.format", &kv_formats},    {"deployment.kv_cache.when_full", &kv_full_policies},
      {"deployment.kv_transfer.mode", &kv_transfer_modes}, {"deployment.kv_transfer.transport", &kv_transports},
      {"deployment.kv_transfer.posting", &kv_postings}, {"deployment.kv_transfer.pieces", &kv_pieces},
      {"deployment.kv_transfer.first_token", &first_tokens}, {"deployment.engram", &engram_placements},
      {"deployment.router.admission.over_limit", &over_limits}, {"deployment.eplb.policy", &eplb_policies},
      {"deployment.eplb.replica_choice", &replica_choices}, {"deployment.eplb.placement", &eplb_areas},
      {"workload.experts.skew", &expert_skews},       {"deployment.host.mode", &host_modes},
      {"deployment.speculation.preset", &acceptance_presets()}, {"deployment.speculation.verify", &verify_policies},
      {"deployment.aggregated.path", &engine_paths},  {"deployment.aggregated.experts", &expert_splits},
      {"deployment.clock", &clock_modes},             {"failures.in_flight", &in_flight_policies},
      {"failures.reload", &reload_tiers},             {"failures.events.kind", &failure_kinds},
      {"workload.kind", &workload_kinds},             {"workload.arrivals", &arrival_kinds},
      {"workload.warmup", &warmup_modes},             {"prices.period", &price_periods},
      {"prices.gpu", &gpu_price_kinds},               {"network", &network_kinds},
      {"fidelity", &fidelities}};
  Listing out{{"key", "value", "meaning"}, {}};
  for (const auto& [key, choices] : all)
    for (const Choice& choice : *choices) out.rows.push_back({key, std::string(choice.name), std::string(choice.meaning)});
  return out;
}

// What workload.trace takes: the two names that it knows, then folders of files.
Listing traces(const Catalog&) {
  const char* const data = std::getenv("RACKCAST_DATA");
  const std::filesystem::path folder = std::filesystem::path(data != nullptr ? data : "") / "traces";
  std::error_code code;
  const bool recorded = data != nullptr && std::filesystem::exists(folder / "kv-cache-tester", code);
  Listing out{{"trace", "what it is"}, {}};
  out.rows.push_back({"generated-v1.0", "made by the program: a seeded twin of the AgentX v1.0 corpus; generated-v1.0:SEED takes another seed"});
  out.rows.push_back({"kv-cache-tester", recorded ? "recorded sessions under RACKCAST_DATA" : "recorded sessions, not under RACKCAST_DATA: the generated load stands in"});
  std::vector<std::vector<std::string>> folders;
  if (data != nullptr)
    for (const auto& entry : std::filesystem::directory_iterator(folder, code))
      if (entry.is_directory() && entry.path().filename() != "kv-cache-tester") folders.push_back({entry.path().string(), "folder under RACKCAST_DATA"});
  std::sort(folders.begin(), folders.end());
  out.rows.insert(out.rows.end(), folders.begin(), folders.end());
  return out;
}

Listing suites(const Catalog& catalog) {
  Listing out{{"name", "where"}, {}};
  for (const std::string& name : catalog.names("suites")) out.rows.push_back({name, catalog.path_of("suites", name)});
  return out;
}

struct ListKind {
  std::string_view name;
  Listing (*make)(const Catalog& catalog);
};
constexpr ListKind kinds[] = {{"gpus", gpus},   {"racks", racks},       {"models", models}, {"prices", prices},
                              {"costs", costs}, {"policies", policies}, {"traces", traces}, {"suites", suites}};

void print(const Listing& listing, bool json) {
  if (!json) {
    TextTable table(listing.header);
    for (const auto& row : listing.rows) table.add(row);
    fmt::print("{}", table.text());
    return;
  }
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : listing.rows) {
    nlohmann::ordered_json object;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool number = listing.header[i].starts_with('>');
      const std::string key = listing.header[i].substr(number ? 1 : 0);
      object[key] = number ? nlohmann::ordered_json::parse(row[i]) : nlohmann::ordered_json(row[i]);
    }
    rows.push_back(std::move(object));
  }
  fmt::print("{}\n", rows.dump(2));
}

}  // namespace

Action setup_list(CLI::App& app, const Program& program) {
  struct Options {
    std::string what;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("WHAT", options->what, "gpus, racks, models, prices, costs, policies, traces or suites")->required()->type_name("");
  app.add_flag("--json", options->json, "as JSON");
  return [options, &program] {
    std::vector<std::string> names;
    for (const ListKind& kind : kinds) {
      names.emplace_back(kind.name);
      if (kind.name != options->what) continue;
      print(kind.make(program.catalog()), options->json);
      return 0;
    }
    const std::string hint = near_match(options->what, names);
    throw UserError(fmt::format("list: {} cannot be listed; {}", quote_input(options->what),
                                hint.empty() ? fmt::format("what can be: {}", fmt::join(names, ", ")) : hint));
  };
}

}  // namespace rackcast
