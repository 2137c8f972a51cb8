// rackcast step: what one engine iteration costs, operator by operator.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/base/error.hpp"
#include "sim/cli/option_checks.hpp"
#include "sim/cli/verbs.hpp"
#include "sim/cost/expert_load.hpp"
#include "sim/cost/memory.hpp"
#include "sim/cost/step_case.hpp"
#include "sim/cost/step_model.hpp"
#include "sim/engine/result_range.hpp"
#include "sim/spec/expert_files.hpp"

namespace rackcast {

namespace {

constexpr int most_ranks = 1 << 16, most_slots = 1 << 15;

struct StepOptions {
  std::string model, gpu, cost, case_text;
  int dep = 0, tp = 0, redundant = 0, nvlink_domain = 0;
  CasePhase phase = CasePhase::automatic;
  std::string eplb;  // empty: balanced routing
  std::string counts, placement;
  ExpertSkew skew = ExpertSkew::zipf;
  double exponent = 1.25;
  ReplicaChoice replicas = ReplicaChoice::round_robin;
  int draft_redundant = 0;
  KvFormat format = KvFormat::nvfp4;
  EngramPlacement engram = EngramPlacement::host;
  HostMode host = HostMode::async;
  ExpertSplit split = ExpertSplit::automatic;
  bool json = false;
};

StepContext context_of(const StepOptions& o, const Catalog& catalog, int draft_tokens) {
  if ((o.dep > 0) == (o.tp > 0)) throw UserError("give one of --dep N and --tp N");
  StepContext c;
  c.model = read_yaml_as<ModelSpec>(catalog.find("models", o.model), catalog.read_options({}, "models"));
  c.gpu = read_yaml_as<GpuSpec>(catalog.find("gpus", o.gpu), catalog.read_options({}, "gpus"));
  c.costs = read_costs(catalog, o.cost.empty() ? o.gpu : o.cost);
  c.ranks = o.dep > 0 ? o.dep : o.tp;
  c.tensor_parallel = o.tp > 0;
  if (o.split != ExpertSplit::automatic) c.expert_parallel = o.split == ExpertSplit::expert_parallel;
  // Without a rack all ranks are taken to be in one NVLink domain, unless told otherwise.
  c.nvlink_domain = o.nvlink_domain > 0 ? o.nvlink_domain : c.ranks;
  c.nic_bandwidth = BytesPerSecond(50e9);  // one 400 Gb/s card a GPU; used with --nvlink-domain only
  c.redundant_experts = o.redundant;
  c.draft_redundant_experts = o.draft_redundant;
  c.draft_tokens = draft_tokens;
  if (draft_tokens > 0 && !c.model.draft) throw UserError("--case: " + o.model + " has no draft model, so :D must be left out");
  if (draft_tokens > 0 && draft_tokens > c.model.draft->max_tokens)
    throw UserError(fmt::format("--case: {} drafts at most {} tokens", o.model, c.model.draft->max_tokens));
  c.kv_format = o.format;
  c.engram = o.engram;
  c.host.mode = o.host;
  return c;
}

// Null when routing is balanced.
std::unique_ptr<TypicalExperts> experts_of(const StepOptions& o, const StepContext& c, const RankBatch& batch) {
  if (o.eplb.empty() || c.model.experts.count == 0) return nullptr;
  EplbSpec eplb;
  bool found = false;
  for (std::size_t i = 0; i < eplb_policies.size(); ++i)
    if (eplb_policies[i].name == o.eplb) eplb.policy = static_cast<EplbPolicy>(i), found = true;
  if (!found) throw UserError("--eplb: unknown policy '" + o.eplb + "'; see `rackcast list policies`");
  if (!o.placement.empty() && eplb.policy != EplbPolicy::static_placement) throw UserError("--placement needs --eplb static");
  eplb.replica_choice = o.replicas;
  ExpertPopularityOptions popularity{.skew = o.counts.empty() ? o.skew : ExpertSkew::counts, .exponent = o.exponent};
  if (!o.counts.empty()) {
    popularity.counts = read_expert_counts(o.counts);
    if (popularity.counts.front().size() != static_cast<std::size_t>(c.model.experts.count))
      throw UserError(fmt::format("{}: {} experts, but {} has {}", o.counts, popularity.counts.front().size(), c.model.name, c.model.experts.count));
  }
  const double tokens = batch.decode_tokens + batch.prefill_tokens, requests = batch.decode_requests + batch.prefill_requests;
  return std::make_unique<TypicalExperts>(c, eplb, popularity, tokens / requests, 42,
                                          o.placement.empty() ? std::vector<ExpertPlacement>{} : read_placement_table(o.placement));
}

RangeTally outside_of(const std::vector<OperatorCost>& operators, double whole_s) {
  RangeTally outside;
  add_outside(outside, operators, whole_s);
  return outside;
}

std::string range_note(const RangeTally& outside, double whole_s) {
  if (outside.families().empty()) return {};
  return fmt::format("{:.1f}% of the step is in launches outside the range of the cost file's points: {}", 100 * outside.share_of(whole_s), outside.text(whole_s));
}

nlohmann::ordered_json as_json(const StepContext& c, const StepTime& t, double tokens, const std::vector<OperatorCost>& operators) {
  nlohmann::ordered_json out;
  out["experts"] = c.model.experts.count == 0 ? "none" : c.whole_experts() ? "expert_parallel" : "tensor_parallel";
  out["total_s"] = t.total_s;
  out["main_s"] = t.total_s - t.draft_s - t.host_s;
  out["groups"] = {{"attention_s", t.attention_s}, {"moe_s", t.moe_s}, {"other_s", t.other_s},
                   {"head_s", t.head_s}, {"draft_s", t.draft_s}, {"host_s", t.host_s}};
  out["tokens_per_rank"] = tokens;
  out["operators"] = nlohmann::ordered_json::array();
  for (const OperatorCost& op : operators)
    out["operators"].push_back({{"name", op.title()}, {"group", op.group}, {"layer_count", op.layer_count}, {"shape", op.shape_text()},
                                {"flops", op.flops}, {"bytes", op.bytes}, {"time_s", op.time_s}, {"basis", basis_names[static_cast<int>(op.basis)]}, {"outside_range", !op.outside.empty()}});
  const RangeTally outside = outside_of(operators, t.total_s);
  out["outside_range"] = range_json(outside, t.total_s);
  if (const std::string note = range_note(outside, t.total_s); !note.empty()) out["notes"] = {note};
  return out;
}

void print_table(const StepOptions& o, const StepContext& c, const StepTime& t, double tokens,
                 const std::vector<OperatorCost>& operators) {
  const char* const experts = c.whole_experts() == !c.tensor_parallel || c.model.experts.count == 0 ? "" : c.whole_experts() ? " with whole experts" : " with experts cut";
  fmt::print("{} on {}, {}{}{}, case {}: {:.0f} tokens {}\n\n", c.model.name, c.gpu.name, c.tensor_parallel ? "TP" : "DEP", c.ranks, experts,
             o.case_text, tokens, c.tensor_parallel ? "in the engine" : "a rank");
  fmt::print("{:<34} {:<9} {:>6} {:<42} {:>10} {:>10} {:>10} {:>6}  {}\n", "operator", "group", "layers", "shape", "GFLOP", "MB",
             "us", "share", "basis");
  for (const OperatorCost& op : operators)
    fmt::print("{:<34} {:<9} {:>6} {:<42} {:>10.2f} {:>10.2f} {:>10.1f} {:>5.1f}%  {}\n", op.title(), op.group, op.layer_count, op.shape_text(),
               op.flops / 1e9, op.bytes / 1e6, op.time_s * 1e6, 100 * op.time_s / t.total_s, std::string(basis_names[static_cast<int>(op.basis)]) + (op.outside.empty() ? "" : ", outside its range"));
  fmt::print("\ntotal {:.3f} ms; main {:.3f}: attention {:.3f}, moe {:.3f}, other {:.3f}, head {:.3f}; draft {:.3f}, host {:.3f}\n",
             t.total_s * 1e3, (t.total_s - t.draft_s - t.host_s) * 1e3, t.attention_s * 1e3, t.moe_s * 1e3, t.other_s * 1e3,
             t.head_s * 1e3, t.draft_s * 1e3, t.host_s * 1e3);
  if (const std::string note = range_note(outside_of(operators, t.total_s), t.total_s); !note.empty()) fmt::print("\nnote: {}\n", note);
}

int run_step(const StepOptions& o, const Program& program) {
  const Catalog catalog = program.catalog();
  const std::vector<CaseItem> items = parse_case(o.case_text);
  const StepContext c = context_of(o, catalog, draft_tokens_of(items));
  const RankBatch batch = batch_of(items, c.model, o.phase);
  for (const CaseItem& item : items)
    if (item.context > static_cast<double>(c.model.max_context.count))
      throw UserError(fmt::format("--case: K {:.0f} is longer than the model's context of {}", item.context, c.model.max_context.count));
  const std::vector<RankBatch> ranks(static_cast<std::size_t>(c.tensor_parallel ? 1 : c.ranks), batch);
  const auto model = make_step_model(c);
  const std::unique_ptr<TypicalExperts> experts = experts_of(o, c, batch);
  const ExpertLoad load = experts ? experts->load() : ExpertLoad{};
  const StepTime time = model->step(ranks, load);
  const std::vector<OperatorCost> operators = model->operators(ranks, load);
  const double tokens = batch.decode_tokens + batch.prefill_tokens;
  if (const std::string note = padding_note(c.model.experts.count, c.redundant_experts, c.ranks); c.whole_experts() && c.ranks > 1 && !note.empty())
    fmt::print(stderr, "note: {}\n", note);
  if (o.json) fmt::print("{}\n", as_json(c, time, tokens, operators).dump(2));
  else print_table(o, c, time, tokens, operators);
  return 0;
}

}  // namespace

Action setup_step(CLI::App& app, const Program& program) {
  auto o = std::make_shared<StepOptions>();  // outlives this call: the parsed action keeps it
  app.add_option("--model", o->model, "a model of `rackcast list models`")->required();
  app.add_option("--gpu", o->gpu, "a GPU of `rackcast list gpus`")->required();
  app.add_option("--dep", o->dep, "ranks of an engine with data-parallel attention")->check(CLI::Range(1, most_ranks));
  app.add_option("--tp", o->tp, "ranks of a tensor-parallel engine")->check(CLI::Range(1, most_ranks));
  static const std::map<std::string, ExpertSplit> splits{{"auto", ExpertSplit::automatic}, {"expert_parallel", ExpertSplit::expert_parallel}, {"tensor_parallel", ExpertSplit::tensor_parallel}};
  add_choice(app, "--experts", o->split, splits, "expert_parallel: whole experts on every rank; tensor_parallel: a slice of every expert; auto: the first with --dep, the second with --tp");
  app.add_option("--case", o->case_text, "[N*]Q[@K][c][:D],...: requests, query tokens, KV length, drafted tokens")->required();
  static const std::map<std::string, CasePhase> phases{{"prefill", CasePhase::prefill}, {"decode", CasePhase::decode}};
  add_choice(app, "--phase", o->phase, phases, "prefill or decode, when Q alone does not tell");
  CLI::Option* const eplb = app.add_option("--eplb", o->eplb, "placement policy, with uneven routing; without it routing is balanced");
  static const std::map<std::string, ExpertSkew> skews{{"zipf", ExpertSkew::zipf}, {"dirichlet", ExpertSkew::dirichlet}, {"power_law", ExpertSkew::power_law}};
  add_choice(app, "--skew", o->skew, skews, "that routing")->needs(eplb);
  app.add_option("--exponent,--zipf", o->exponent, "exponent of zipf or power_law")->check(number_from(0, 10))->needs(eplb);
  app.add_option("--counts", o->counts, "recorded tokens instead: CSV with layer, expert, tokens")->needs(eplb);
  app.add_option("--placement", o->placement, "placement table of `rackcast eplb --out`, for --eplb static")->needs(eplb);
  static const std::map<std::string, ReplicaChoice> replica_names{{"round_robin", ReplicaChoice::round_robin}, {"load_aware", ReplicaChoice::load_aware}};
  add_choice(app, "--replica-choice", o->replicas, replica_names, "which replica of an expert its tokens go to")->needs(eplb);
  app.add_option("--draft-redundant-experts", o->draft_redundant, "expert slots beyond the draft's experts")->check(CLI::Range(0, most_slots));
  app.add_option("--redundant-experts", o->redundant, "expert slots beyond the model's experts")->check(CLI::Range(0, most_slots));
  app.add_option("--cost", o->cost, "cost file; the GPU's own if left out");
  app.add_option("--nvlink-domain", o->nvlink_domain, "GPUs that reach each other over NVLink; all if left out")->check(CLI::Range(1, most_ranks));
  static const std::map<std::string, KvFormat> formats{{"nvfp4", KvFormat::nvfp4}, {"fp8_layout", KvFormat::fp8_layout}};
  add_choice(app, "--kv-format", o->format, formats, "nvfp4 (the model's first) or fp8_layout (its second)");
  static const std::map<std::string, EngramPlacement> placements{
      {"hbm", EngramPlacement::hbm}, {"peer", EngramPlacement::peer}, {"host", EngramPlacement::host}};
  add_choice(app, "--engram", o->engram, placements, "where the Engram tables are");
  static const std::map<std::string, HostMode> hosts{{"sync", HostMode::sync}, {"async", HostMode::async}};
  add_choice(app, "--host", o->host, hosts, "is the host's work hidden under the GPU's (async) or not (sync)");
  app.add_flag("--json", o->json, "machine-readable");
  return [o, &program] { return run_step(*o, program); };
}

}  // namespace rackcast
