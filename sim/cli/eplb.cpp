// rackcast eplb: what a placement policy would make of recorded expert counts, without a run; writes placement tables.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/base/error.hpp"
#include "sim/base/output.hpp"
#include "sim/cli/option_checks.hpp"
#include "sim/cli/verbs.hpp"
#include "sim/policy/eplb.hpp"
#include "sim/policy/eplb_policy.hpp"
#include "sim/spec/expert_files.hpp"

namespace rackcast {

namespace {

struct EplbOptions {
  std::string counts, test, table, out;
  std::vector<std::string> policies;
  int ep = 0, redundant = 0, groups = 0, nodes = 1;
  ReplicaChoice choice = ReplicaChoice::round_robin;
  bool json = false;
};

struct Row {
  std::string policy;
  double mean = 0, worst = 0;      // imbalance over layers
  double moved_per_rank = 0;       // experts, mean over layers, from the checkpoint's order
  bool shared = false;
  std::vector<ExpertPlacement> layers;
};

using Counts = std::vector<std::vector<double>>;

Row evaluate(const std::string& name, std::vector<ExpertPlacement> layers, const Counts& counts, const EplbOptions& o) {
  Row row{.policy = name, .layers = std::move(layers)};
  const double n = static_cast<double>(counts.size());
  for (std::size_t l = 0; l < counts.size(); ++l) {
    const ExpertPlacement& placed = row.layers[l];
    const auto loads = o.choice == ReplicaChoice::round_robin ? rank_loads(placed, counts[l]) : rank_loads_balanced(placed, counts[l]);
    const double gap = imbalance(loads);
    row.mean += gap / n;
    row.worst = std::max(row.worst, gap);
    row.shared = row.shared || replicas_share_a_rank(placed);
    for (const int moved : moved_slots(place_linear(placed.experts, placed.ranks, placed.slots_per_rank), placed))
      row.moved_per_rank += moved / (n * placed.ranks);
  }
  return row;
}

EplbPolicy policy_named(const std::string& name) {
  for (std::size_t i = 0; i < eplb_policies.size(); ++i)
    if (eplb_policies[i].name == name) return static_cast<EplbPolicy>(i);
  throw UserError("--policy: unknown policy '" + name + "'; see `rackcast list policies`");
}

// Placed from `seen`; an oracle from what it is measured on.
std::vector<ExpertPlacement> place(EplbPolicy policy, const Counts& seen, const Counts& measured, const EplbOptions& o) {
  const int experts = static_cast<int>(seen.front().size());
  EplbSpec spec;
  spec.policy = policy;
  spec.area = o.groups > 0 ? EplbArea::hierarchical : EplbArea::global;
  if (o.groups > 0) spec.groups = o.groups;
  const auto planner = make_eplb_planner(spec, {experts, o.ep, slots_per_rank(experts, o.ep, o.redundant), o.nodes, false});
  std::vector<ExpertPlacement> layers;
  for (std::size_t l = 0; l < seen.size(); ++l) {
    if (planner->every_step()) layers.push_back(planner->next(measured[l]));
    else if (planner->move() != EplbMove::free) layers.push_back(planner->next(seen[l]));
    else layers.push_back(planner->initial(static_cast<int>(l), seen[l]));
  }
  return layers;
}

std::vector<Row> rows_of(const EplbOptions& o) {
  const Counts seen = read_expert_counts(o.counts);
  const Counts measured = o.test.empty() ? seen : read_expert_counts(o.test);
  const int experts = static_cast<int>(seen.front().size());
  if (measured.size() != seen.size() || measured.front().size() != seen.front().size())
    throw UserError(o.test + ": other layers or experts than " + o.counts);
  if (o.ep < 1 || o.ep > experts) throw UserError(fmt::format("--ep: must be 1 to the {} experts", experts));
  std::vector<Row> rows;
  for (const std::string& name : o.policies) rows.push_back(evaluate(name, place(policy_named(name), seen, measured, o), measured, o));
  if (!o.table.empty()) {
    std::vector<ExpertPlacement> table = read_placement_table(o.table);
    EplbSpec spec;
    spec.policy = EplbPolicy::static_placement;  // refuses a table of another shape
    make_eplb_planner(spec, {experts, o.ep, slots_per_rank(experts, o.ep, o.redundant), o.nodes, false}, table);
    if (table.size() != measured.size()) throw UserError(fmt::format("{}: {} layers, but the counts have {}", o.table, table.size(), measured.size()));
    rows.push_back(evaluate("table", std::move(table), measured, o));
  }
  return rows;
}

int run_eplb(const EplbOptions& o) {
  const std::vector<Row> rows = rows_of(o);
  if (o.json) {
    nlohmann::ordered_json out;
    out["ep"] = o.ep;
    out["slots_per_rank"] = rows.front().layers.front().slots_per_rank;
    out["policies"] = nlohmann::ordered_json::array();
    for (const Row& row : rows)
      out["policies"].push_back({{"policy", row.policy}, {"imbalance_mean", row.mean}, {"imbalance_worst_layer", row.worst},
                                 {"moved_experts_per_rank_and_layer", row.moved_per_rank}, {"replicas_share_a_rank", row.shared}});
    fmt::print("{}\n", out.dump(2));
  } else {
    const ExpertPlacement& any = rows.front().layers.front();
    fmt::print("{} layers, {} experts on {} ranks, {} slots a rank; imbalance = (busiest rank - mean) / mean\n\n{:<16} {:>10} {:>12} {:>18}\n",
               rows.front().layers.size(), any.experts, any.ranks, any.slots_per_rank, "policy", "imbalance", "worst layer", "moved a rank+layer");
    for (const Row& row : rows) fmt::print("{:<16} {:>10.3f} {:>12.3f} {:>18.1f}\n", row.policy, row.mean, row.worst, row.moved_per_rank);
  }
  refuse_overwriting(o.out, {o.counts, o.test, o.table});
  if (!o.out.empty()) write_output_file(o.out, placement_table_text(rows.front().layers));
  return 0;
}

}  // namespace

Action setup_eplb(CLI::App& app, const Program&) {
  auto o = std::make_shared<EplbOptions>();
  app.add_option("counts", o->counts, "recorded tokens that placements rest on: CSV with layer, expert, tokens")->required();
  app.add_option("--ep", o->ep, "ranks of the engine")->required();
  app.add_option("--redundant-experts", o->redundant, "expert slots beyond one per expert")->check(CLI::Range(0, 1 << 15));
  app.add_option("--policy", o->policies, "policies to evaluate, repeatable; --out writes the first one's table")
      ->default_val(std::vector<std::string>{"static", "none", "random_replicas"});
  app.add_option("--test", o->test, "counts to measure on; the same if left out");
  app.add_option("--table", o->table, "a placement table to measure beside them");
  app.add_option("--groups", o->groups, "hierarchical placement of that many groups of experts")->check(CLI::NonNegativeNumber);
  app.add_option("--nodes", o->nodes, "nodes that the ranks spread over")->check(CLI::PositiveNumber);
  static const std::map<std::string, ReplicaChoice> choices{{"round_robin", ReplicaChoice::round_robin}, {"load_aware", ReplicaChoice::load_aware}};
  add_choice(app, "--replica-choice", o->choice, choices, "which replica of an expert its tokens go to");
  app.add_option("--out", o->out, "file for the first policy's placement table");
  app.add_flag("--json", o->json, "machine-readable");
  return [o] { return run_eplb(*o); };
}

}  // namespace rackcast
