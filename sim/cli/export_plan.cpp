#include "sim/cli/export_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/error.hpp"
#include "sim/cost/memory.hpp"

namespace rackcast {

const std::vector<std::string> serve_flag_sources = {
    "parallelism: docs.vllm.ai, serving/data_parallel_deployment and serving/expert_parallel_deployment",
    "eplb-config: docs.vllm.ai, api/vllm/config/parallel, class EPLBConfig",
    "kv-transfer-config: docs.vllm.ai, features/nixl_connector_usage and design/nixl_kv_push_connector (push)",
    "OffloadingConnector: docs.vllm.ai, features/kv_offloading_usage",
    "speculative-config: Dynamo recipes/deepseek-v4.1-flash (dspark) and srt-slurm recipes/vllm/deepseek-v4-pro (mtp)"};

namespace {

using Kind = ServeFlag::Kind;

// The names under which the models are published.
const std::map<std::string, std::string, std::less<>> published_models = {
    {"deepseek-v4.1-flash", "deepseek-ai/DeepSeek-V4.1-Flash"}, {"deepseek-v4-flash", "deepseek-ai/DeepSeek-V4-Flash"},
    {"deepseek-v4-pro", "deepseek-ai/DeepSeek-V4-Pro"},         {"deepseek-r1", "deepseek-ai/DeepSeek-R1"},
    {"deepseek-v3", "deepseek-ai/DeepSeek-V3"},                 {"kimi-k2.5", "moonshotai/Kimi-K2.5"}};

class RoleBuilder {
 public:
  RoleBuilder(const Scenario& scenario, const EngineSpec& engine, EngineRole kind, const std::string& name)
      : s_(scenario), d_(scenario.deployment), e_(engine), kind_(kind) {
    role_.name = name;
    role_.engines = engine.engines;
    role_.ranks = engine.ranks();
    role_.gpus_per_node = std::min(engine.ranks(), s_.rack.gpus_per_node);
    role_.nodes = (engine.ranks() + role_.gpus_per_node - 1) / role_.gpus_per_node;
    role_.data_parallel = engine.dep > 0;
  }

  ServeRole build() {
    parallelism();
    batching();
    memory();
    kv_transfer();
    experts();
    speculation();
    add(d_.host.mode == HostMode::async ? "async-scheduling" : "no-async-scheduling", "", Kind::yes, "deployment.host.mode");
    return std::move(role_);
  }

 private:
  std::string key(const char* name) const { return fmt::format("deployment.{}.{}", role_.name, name); }
  void add(const std::string& name, const std::string& value, Kind kind, const std::string& from) { role_.flags.push_back({name, value, kind, from}); }
  void number(const std::string& name, std::int64_t value, const std::string& from) { add(name, fmt::format("{}", value), Kind::number, from); }

  void parallelism() {
    number("tensor-parallel-size", e_.dep > 0 ? 1 : e_.tp, key(e_.dep > 0 ? "dep" : "tp"));
    if (e_.dep > 0) number("data-parallel-size", e_.dep, key("dep"));
    if (e_.expert_parallel()) add("enable-expert-parallel", "", Kind::yes, key(e_.experts == ExpertSplit::automatic ? "dep" : "experts"));
  }
  void batching() {
    const int verified = 1 + d_.speculation.draft_tokens;
    // A decode engine gets no prompts: its budget is every running request with its draft.
    if (kind_ == EngineRole::decode)
      number("max-num-batched-tokens", std::int64_t{e_.max_requests_per_rank} * verified, key("max_requests_per_rank") + " x (1 + draft_tokens)");
    else
      number("max-num-batched-tokens", e_.max_batched_tokens.count, key("max_batched_tokens"));
    number("max-num-seqs", e_.max_requests_per_rank, key("max_requests_per_rank"));
    add(d_.kv_cache.prefix_cache ? "enable-prefix-caching" : "no-enable-prefix-caching", "", Kind::yes, "deployment.kv_cache.prefix_cache");
  }
  void memory() {
    const MemoryPlan plan = plan_memory(s_.model, s_.rack, e_, kind_, d_);
    const double share = std::floor((plan.used_bytes + plan.kv_pool_bytes) / plan.memory_bytes * 1000) / 1000;
    add("gpu-memory-utilization", fmt::format("{}", share), Kind::number, "weights, activations and kv_cache.memory_fraction of the rest");
    add("kv-cache-dtype", d_.kv_cache.format == KvFormat::nvfp4 ? "auto" : "fp8", Kind::text, "deployment.kv_cache.format");
  }
  void kv_transfer() {
    const bool hand_over = s_.deployment.decode.has_value() && kind_ != EngineRole::aggregated;
    const std::string nixl = fmt::format(R"({{"kv_connector":"{}","kv_role":"kv_both"}})",
                                         d_.kv_transfer.mode == KvTransferMode::pull ? "NixlConnector" : "NixlPushConnector");
    const double tier = host_bytes();
    const std::string offload = fmt::format(R"({{"kv_connector":"OffloadingConnector","kv_role":"kv_both","kv_connector_extra_config":{{"cpu_bytes_to_use":{:.0f}}}}})", tier);
    const std::string both = fmt::format(R"({{"kv_connector":"MultiConnector","kv_role":"kv_both","kv_connector_extra_config":{{"connectors":[{},{}]}}}})", nixl, offload);
    if (hand_over && tier > 0) add("kv-transfer-config", both, Kind::json, "deployment.kv_transfer.mode, deployment.kv_cache.host_tier");
    else if (hand_over) add("kv-transfer-config", nixl, Kind::json, "deployment.kv_transfer.mode");
    else if (tier > 0) add("kv-transfer-config", offload, Kind::json, "deployment.kv_cache.host_tier");
  }
  // Of one engine process: a rank for data parallelism, the whole engine for tensor parallelism. Decode engines reuse
  // no prefixes, so they get no tier.
  double host_bytes() const {
    if (kind_ == EngineRole::decode || !d_.kv_cache.prefix_cache) return 0;
    const Bytes wanted = d_.kv_cache.host_tier_per_node;
    const double per_gpu = (wanted.value() < 0 ? s_.rack.host_tier_per_node : wanted).value() / s_.rack.gpus_per_node;
    return std::floor(per_gpu * (e_.dep > 0 ? 1 : e_.tp));
  }
  void experts() {
    if (!e_.expert_parallel() || d_.eplb.policy == EplbPolicy::none) return;
    const bool async = d_.eplb.policy == EplbPolicy::periodic_async;
    if (!async && d_.eplb.policy != EplbPolicy::periodic_sync) return;
    add("enable-eplb", "", Kind::yes, "deployment.eplb.policy");
    add("eplb-config", fmt::format(R"({{"window_size":{},"step_interval":{},"num_redundant_experts":{},"use_async":{}}})", d_.eplb.window,
                                   d_.eplb.interval, d_.eplb.redundant_experts, async),
        Kind::json, "deployment.eplb");
  }
  void speculation() {
    if (d_.speculation.draft_tokens == 0 || !s_.model.draft) return;
    const char* const method = s_.model.draft->kind == DraftKind::dspark ? "dspark" : "mtp";
    add("speculative-config", fmt::format(R"({{"method":"{}","num_speculative_tokens":{}}})", method, d_.speculation.draft_tokens), Kind::json,
        "deployment.speculation.draft_tokens");
  }

  const Scenario& s_;
  const DeploymentSpec& d_;
  const EngineSpec& e_;
  EngineRole kind_;
  ServeRole role_;
};

const char* precision_of(WeightType type) {
  switch (type) {
    case WeightType::bf16: return "bf16";
    case WeightType::fp8: return "fp8";
    case WeightType::fp4:
    case WeightType::nvfp4: return "fp4";
    case WeightType::int4: return "int4";
  }
  return "";
}

std::vector<std::string> notes_of(const Scenario& s) {
  const DeploymentSpec& d = s.deployment;
  std::vector<std::string> notes;
  for (const auto& [pool, name] : {std::pair{&d.prefill, "prefill"}, {&d.decode, "decode"}, {&d.aggregated, "aggregated"}})
    if (*pool && !(*pool)->expert_parallel() && d.eplb.policy != EplbPolicy::none && s.model.experts.count > 0)
      notes.push_back(fmt::format("eplb.policy: {} has slices of every expert, so that nothing is placed there", name));
  const auto policy = [](const auto& choices, auto value) { return std::string(choices[static_cast<std::size_t>(value)].name); };
  if (d.kv_transfer.mode == KvTransferMode::push_layerwise && d.decode)
    notes.push_back("kv_transfer.mode push_layerwise: written as push; the connector sends when prefill has ended");
  if (d.eplb.policy != EplbPolicy::none && d.eplb.policy != EplbPolicy::periodic_sync && d.eplb.policy != EplbPolicy::periodic_async)
    notes.push_back(fmt::format("eplb.policy {}: the engine has no such policy; none is written", policy(eplb_policies, d.eplb.policy)));
  if (d.router.policy != RouterPolicy::prefix_affinity && d.router.policy != RouterPolicy::round_robin)
    notes.push_back(fmt::format("router.policy {}: the routers here know round robin and cached prefixes; round robin is written", policy(router_policies, d.router.policy)));
  if (d.router.balance == BalancePolicy::tokens) notes.push_back("router.balance tokens: the engine balances its ranks by requests");
  if (s.model.engram) notes.push_back(fmt::format("engram {}: the placement of Engram's tables has no flag here", policy(engram_placements, d.engram)));
  if (d.kv_cache.when_full == KvFullPolicy::wait) notes.push_back("kv_cache.when_full wait: the engine preempts when KV runs out");
  return notes;
}

}  // namespace

const ServeFlag& ServeRole::flag(const std::string& flag_name) const {
  const auto found = std::ranges::find(flags, flag_name, &ServeFlag::name);
  RACKCAST_CHECK(found != flags.end(), "a role without flag " + flag_name);
  return *found;
}

std::string export_header(const ServePlan& plan, const std::string& what) {
  std::string name = plan.name;
  for (char& c : name) c = static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  std::string text = fmt::format("# {}: {} Flags of {}.\n", name, what, serve_flags_version);
  for (const std::string& source : serve_flag_sources) text += fmt::format("#   {}\n", source);
  for (const std::string& note : plan.notes) text += fmt::format("# Note: {}\n", note);
  return text;
}

ServePlan serve_plan(const Scenario& s, const std::string& model_path) {
  ServePlan plan;
  plan.name = s.name;
  plan.gpu = s.rack.gpu.name;
  plan.gpus_per_node = s.rack.gpus_per_node;
  plan.precision = precision_of(s.model.experts.weights);
  plan.router = s.deployment.router.policy;
  const auto known = published_models.find(s.model.name);
  plan.model = !model_path.empty() ? model_path : known != published_models.end() ? known->second : s.model.name;
  const auto add = [&](const std::optional<EngineSpec>& pool, EngineRole kind, const char* name) {
    if (pool) plan.roles.push_back(RoleBuilder(s, *pool, kind, name).build());
  };
  add(s.deployment.prefill, EngineRole::prefill, "prefill");
  add(s.deployment.decode, EngineRole::decode, "decode");
  add(s.deployment.aggregated, EngineRole::aggregated, "aggregated");
  plan.notes = notes_of(s);
  return plan;
}

}  // namespace rackcast
