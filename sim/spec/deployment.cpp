#include "sim/spec/deployment.hpp"

namespace rackcast {

const std::vector<Choice> router_policies = {
    {"round_robin", "engines in turn"},
    {"least_loaded", "the engine with the least queued work"},
    {"session_affinity", "all requests of a session go to one engine"},
    {"prefix_affinity", "the engine that holds the longest cached prefix, unless it is overloaded"},
    {"session_hash", "all requests of a session go to the engine that its hash names, whatever its load"}};
const std::vector<Choice> balance_policies = {{"count", "the rank with the fewest requests"},
                                              {"tokens", "the rank with the least context"}};
const std::vector<Choice> kv_full_policies = {{"wait", "a request that does not fit waits for its turn"},
                                              {"preempt", "the youngest request is put back and computed again later"}};
const std::vector<Choice> kv_formats = {{"nvfp4", "the model's compact format (V4.1-Flash: 890 B a token)"},
                                        {"fp8_layout", "the model's FP8 layout (V4.1-Flash: 1,630 B a token)"}};
const std::vector<Choice> engram_placements = {{"hbm", "a copy on every rank"},
                                               {"peer", "sharded over the engine's ranks, read over NVLink"},
                                               {"host", "in host memory, read over the host link"}};
const std::vector<Choice> engine_paths = {
    {"standard", "one kernel an operation, as in engines for many users"},
    {"low_latency", "steps of few tokens run fused kernels, a handful a layer; larger ones take the standard path"}};
const std::vector<Choice> expert_splits = {
    {"auto", "expert_parallel with dep, tensor_parallel with tp"},
    {"expert_parallel", "every rank holds whole experts (EP); with dep tokens go to them and back, with tp every rank has all tokens and one all-reduce adds up"},
    {"tensor_parallel", "every rank holds a slice of every expert (MoE TP); with dep all ranks' tokens are gathered before and reduced behind"}};
const std::vector<Choice> network_kinds = {{"simgrid", "SimGrid's max-min flows: the reference"},
                                           {"fluid", "an exact max-min solver of our own, faster in very large sweeps"}};
const std::vector<Choice> clock_modes = {
    {"burst", "kernels run at the rates that short bursts from a rested clock show"},
    {"sustained", "iterations with prompts run at the rates that the power cap leaves of long work (cost family clock)"}};
const std::vector<Choice> fidelities = {{"collapsed", "one event an engine step"},
                                        {"layered", "one event a layer; checks the collapsed form"},
                                        {"flow", "each layer's dispatch and combine as network flows; slowest"}};

constexpr int most_ranks = 10000;

void fields(Visitor& v, EngineSpec& e) {
  v.field("engines", e.engines, "identical engines").required().require(e.engines > 0 && e.engines <= 30000, "must be 1 to 30000");
  v.field("dep", e.dep, "ranks of an engine with data-parallel attention; by default whole experts are spread over them")
      .require(e.dep >= 0 && e.dep <= most_ranks, "must be 0 to 10000");
  v.field("tp", e.tp, "ranks of a tensor-parallel engine").require(e.tp >= 0 && e.tp <= most_ranks, "must be 0 to 10000");
  v.rule(e.tp > 0 ? "tp" : "dep", (e.dep > 0) != (e.tp > 0), "give one of dep and tp");
  v.field("max_batched_tokens", e.max_batched_tokens, "prefill token budget of one iteration: per rank for dep, per engine for tp")
      .require(e.max_batched_tokens.count > 0 && e.max_batched_tokens.count <= std::int64_t{1} << 30, "must be 1 to 1024M");
  v.field("max_requests_per_rank", e.max_requests_per_rank, "running requests: per rank for dep, per engine for tp")
      .require(e.max_requests_per_rank > 0, "must be > 0");
  v.field("prompt_chunk", e.prompt_chunk, "tokens of one prompt in an iteration; 0: as max_batched_tokens has room")
      .require(e.prompt_chunk.count >= 0 && e.prompt_chunk.count <= std::int64_t{1} << 30, "must be 0 to 1024M");
  v.field("answer_iterations", e.answer_iterations, "iterations without prompts after one with them, while there are answers to make")
      .require(e.answer_iterations >= 0, "must be >= 0");
  v.choice("path", e.path, engine_paths, "kernels of small steps")
      .require(e.path == EnginePath::standard || e.tp > 0, "low_latency is for tensor-parallel engines: give tp");
  v.choice("experts", e.experts, expert_splits, "how routed experts are divided over the ranks");
  v.field("cost", e.cost, "cost file (costs/); empty: the one named like the GPU");
}

void fields(Visitor& v, RouterSpec& r) {
  v.choice("policy", r.policy, router_policies, "how a prefill engine is picked for a request");
  v.field("load_limit", r.load_limit, "prefix_affinity: leave the home for a target that would be done this many times sooner")
      .require(r.load_limit >= 1, "must be >= 1");
  v.choice("balance", r.balance, balance_policies, "how a rank of an engine is picked");
  v.group("admission", r.admission, "how much may be inside the engines at once");
}

void fields(Visitor& v, KvCacheSpec& k) {
  v.choice("format", k.format, kv_formats, "how KV is stored");
  v.field("memory_fraction", k.memory_fraction, "share of the memory that weights and activations leave free")
      .require(k.memory_fraction > 0 && k.memory_fraction <= 1, "must be in (0, 1]");
  v.field("gpu_share", k.gpu_share, "share of the GPU's memory for weights, activations and KV together, instead of memory_fraction; 0: memory_fraction")
      .require(k.gpu_share >= 0 && k.gpu_share <= 1, "must be in [0, 1]");
  v.field("kept_state", k.kept_state, "what the window and compressor states of a finished request keep of HBM beside its cached blocks, until they are evicted as the least recent; 0: nothing")
      .require(k.kept_state.value() >= 0 && k.kept_state.value() <= 1e12, "must be 0 to 1 TB");
  v.field("retention_interval", k.retention_interval, "models with windows: their states are kept at the ends of prompts and at multiples of so many tokens, and a later prompt goes on from there (vLLM's --prefix-cache-retention-interval); 0: from any block")
      .require(k.retention_interval.count >= 0 && k.retention_interval.count <= std::int64_t{1} << 30, "must be 0 to 1024M");
  v.automatic("host_tier", k.host_tier_per_node, "host memory for KV that HBM has no room for; auto: the rack's; 0: none", "node");
  v.field("prefix_cache", k.prefix_cache, "keep KV of finished requests for later ones that share the prefix");
  v.choice("when_full", k.when_full, kv_full_policies, "what happens to a request that does not fit");
}


void fields(Visitor& v, DeploymentSpec& d) {
  v.optional_group("prefill", d.prefill, "engines that compute prompts");
  v.optional_group("decode", d.decode, "engines that produce output, with KV from the prefill engines");
  v.optional_group("aggregated", d.aggregated, "engines that do both");
  v.rule("", d.prefill.has_value() != d.aggregated.has_value(), "needs prefill and decode, or aggregated, or prefill alone");
  v.rule("decode", !d.decode || !d.aggregated, "aggregated engines decode themselves: drop decode");
  v.group("router", d.router, "which engine a request goes to");
  v.group("kv_cache", d.kv_cache, "where KV lives");
  v.group("kv_transfer", d.kv_transfer, "hand-over from prefill to decode");
  v.choice("engram", d.engram, engram_placements, "where a model's Engram tables are (V4.1-Flash)");
  v.group("eplb", d.eplb, "expert placement");
  v.group("speculation", d.speculation, "draft and verify");
  v.group("host", d.host, "the host's part of a step");
  v.choice("clock", d.clock, clock_modes, "tensor-core rate of prompts");
}

int DeploymentSpec::gpus() const {
  int total = 0;
  for (const auto& pool : {prefill, decode, aggregated}) total += pool ? pool->gpus() : 0;
  return total;
}

}  // namespace rackcast
