#include "sim/cli/published_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>

#include "sim/base/error.hpp"
#include "sim/cli/launch.hpp"
#include "sim/cost/costs.hpp"
#include "sim/cost/step_model.hpp"
#include "sim/spec/scenario.hpp"

namespace rackcast {

namespace {

// Golden acceptance lengths by draft depth 1..8 (InferenceX golden_al_distribution, SPEED-Bench coding, temperature 1):
// V4-Pro MTP with thinking on stands for every MTP model; DSpark's own for V4-Pro; 3.51 for V4.1-Flash at depth 5.
constexpr std::array<double, 8> mtp_length{1.79, 2.27, 2.49, 2.54, 2.55, 2.55, 2.54, 2.58};
constexpr std::array<double, 8> dspark_length{1.84, 2.51, 3.01, 3.36, 3.61, 3.77, 3.73, 3.47};

double acceptance_length(const PublishedRow& row, int draft) {
  if (row.acceptance_length > 0) return row.acceptance_length;
  if (draft <= 0) return 1.0;
  const auto depth = static_cast<std::size_t>(std::min(draft, 8) - 1);
  if (row.model.find("V4.1") != std::string::npos && draft == 5) return 3.51;
  return row.model.find("V4") != std::string::npos && draft > 3 ? dspark_length[depth] : mtp_length[depth];
}

// How uneven experts are where nothing evens them: aiconfigurator's assumption for DeepSeek models (power_law_alpha 1.01 in
// sdk/models/deepseek*.py, its tables draw it so), with which engines of 32 ranks gain from balancing what LMSYS reports.
constexpr const char* expert_load = ", experts: {skew: power_law, exponent: 1.01}";

std::string model_of(const PublishedRow& row) {
  const auto has = [&](const char* part) { return row.model.find(part) != std::string::npos; };
  if (has("DeepSeek-R1") || has("DeepSeek-V3")) {
    if (has("V3.2")) return "";
    return row.precision == "fp4" || row.precision == "nvfp4" ? "deepseek-r1-nvfp4" : "deepseek-r1";
  }
  if (has("Kimi-K2.5") || has("Kimi-K2-")) return row.precision == "int4" ? "kimi-k2.5-int4" : "kimi-k2.5";
  if (has("V4.1-Flash")) return "deepseek-v4.1-flash";
  if (has("V4-Flash")) return "deepseek-v4-flash";
  if (has("V4-Pro")) return "deepseek-v4-pro";
  return "";
}

std::string rack_of(const std::string& gpu) {
  if (gpu == "gb200" || gpu == "gb300") return gpu + "-nvl72";
  if (gpu == "b200" || gpu == "b300" || gpu == "h200" || gpu == "h100") return "hgx-" + gpu;
  return "";
}

bool dep(const PublishedEngines& e) { return e.attention_dp.value_or(false) && e.gpus_each > 1; }

// Running requests of one rank of a decode engine. TensorRT-LLM launches of the published recipes on racks and with FP4
// size their batch to a power of two just below the closed loop's share (97 of 106 recipes: 666 users on 16 ranks run at
// batch 32), so that some users always wait. Others are not limited below the share.
int most_requests(const PublishedRow& row, int workers, int users) {
  const PublishedEngines& e = *row.decode;
  if (e.most_requests > 0) return e.most_requests;
  const int ranks = workers * (dep(e) ? e.gpus_each : 1);
  // Agentic launches run twice the lanes, spread over the ranks: subagents ask beside their session (max-num-seqs 2 CONC / TP).
  if (row.workload == "agentx" && row.request_cap == 0) return std::max(1, (2 * users + ranks - 1) / ranks);
  const bool tight = row.gpu == "gb200" || row.gpu == "gb300" || row.precision == "fp4" || row.precision == "nvfp4";
  if (row.framework == "trtllm" && row.disaggregated && tight && row.request_cap == 0)
    return static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max({1, users / ranks, row.launch_concurrency / ranks}))));
  return std::max(1, (users + ranks - 1) / ranks);
}

int machines(const PublishedEngines& e, int workers) {
  constexpr int gpus = 8;
  if (e.gpus_each >= gpus) return workers * ((e.gpus_each + gpus - 1) / gpus);
  const int beside = gpus / std::max(1, e.gpus_each);
  return (workers + beside - 1) / beside;
}

// SGLang's launches without ep_size cut experts. TensorRT-LLM's runs are listed both as cut and as whole with the same results;
// its recipes keep them whole.
const char* experts_of(const PublishedRow& row, const PublishedEngines& e) {
  return row.framework == "sglang" && dep(e) && e.experts_cut ? ", experts: tensor_parallel" : "";
}

// One engine pool in YAML.
std::string pool(const PublishedRow& row, const char* role, const PublishedEngines& e, int workers, int chunk, int share, const std::string& more = "") {
  return fmt::format("  {}: {{engines: {}, {}: {}, max_batched_tokens: {}, max_requests_per_rank: {}{}{}}}\n", role, workers, dep(e) ? "dep" : "tp", e.gpus_each, chunk, share, experts_of(row, e), more);
}

// Prefill engines so that prefill is not what limits the closed loop: requests/s that decode asks for (batch of an even
// share, mean context) over requests/s that one prefill engine gives, at 85% utilisation. Both from the cost model.
int prefill_engines_for(const PublishedRow& row, const Catalog& catalog, const std::string& yaml_of_one, int room) {
  constexpr double utilisation = 0.85;
  const Scenario s = read_scenario(YamlSource{row.id, yaml_of_one}, catalog, {});
  const auto prefill = make_step_model(s.model, s.rack, *s.deployment.prefill, s.deployment, catalog);
  const auto decode = make_step_model(s.model, s.rack, *s.deployment.decode, s.deployment, catalog);
  const double shrink = 0.5 * (1 + row.range_ratio), input = shrink * row.input_tokens, output = shrink * row.output_tokens;
  const auto ranks_of = [](const EngineSpec& e) { return e.dep > 0 ? static_cast<std::size_t>(e.dep) : std::size_t{1}; };

  const std::size_t decode_ranks = ranks_of(*s.deployment.decode);
  const double share = std::max(1.0, row.concurrency / static_cast<double>(decode_ranks * static_cast<std::size_t>(s.deployment.decode->engines)));
  const double query = 1 + s.deployment.speculation.draft_tokens, context = input + output / 2;
  RankBatch d;
  d.decode_requests = d.draft_requests = share;
  d.decode_tokens = share * query;
  d.decode_context = share * context;
  d.decode_query_context = share * query * context;
  const double tpot = decode->step(std::vector<RankBatch>(decode_ranks, d)).total_s / s.deployment.speculation.acceptance_length;

  RankBatch p;
  p.prefill_tokens = input;
  p.prefill_requests = 1;
  p.prefill_context = input;
  p.prefill_query_context = input * input / 2;
  p.prefill_tail_tokens = std::min(input, 128.0);
  p.prefill_tail_query_context = p.prefill_tail_tokens * input;
  const std::size_t prefill_ranks = ranks_of(*s.deployment.prefill);
  const double one_engine = static_cast<double>(prefill_ranks) / prefill->step(std::vector<RankBatch>(prefill_ranks, p)).total_s;
  const double asked = row.concurrency / (output * tpot);
  return std::clamp(static_cast<int>(std::ceil(asked / (utilisation * one_engine))), 1, std::max(1, room));
}

}  // namespace

double waited_s(const PublishedScenario& scenario, double tpot_s) {
  return scenario.front_end_s + scenario.waited_iterations * tpot_s * scenario.tokens_per_iteration;
}

PublishedScenario scenario_of(const PublishedRow& row, const Catalog& catalog) {
  PublishedScenario result;
  const std::string model = model_of(row), rack = rack_of(row.gpu);
  const auto refuse = [&](std::string reason) {
    result.refused = std::move(reason);
    return result;
  };
  if (model.empty()) return refuse("no model file for " + row.model);
  if (rack.empty()) return refuse("no rack file for " + row.gpu);
  if (row.concurrency <= 0) return refuse("the row does not say its concurrency");
  if (row.workload == "fixed" && (row.input_tokens <= 0 || row.output_tokens <= 0)) return refuse("the row does not say its lengths");
  if (!row.decode || row.decode->gpus_each <= 0) return refuse("the row does not say its decode engine");
  if (row.disaggregated && (!row.prefill || row.prefill->gpus_each <= 0)) return refuse("the row does not say its prefill engine");
  if (row.gpu[0] == 'h' && (row.precision == "fp4" || row.precision == "nvfp4") && model.find("kimi") == std::string::npos && model.find("v4") == std::string::npos)
    return refuse("FP4 weights on a GPU without FP4 units");

  constexpr double us = 1e-6;
  const CostSpec costs = read_costs(catalog, row.gpu);
  const double hand_over_us = costs.get("kv_transfer", "dynamo_control_us").value;
  const int draft = row.draft_tokens.value_or(0);
  const Launch launch = launch_of(row);
  const int chunk = launch.prompt_tokens;
  const int decode_workers = std::max(1, row.decode->workers);
  const int lanes = row.request_cap > 0 ? std::min(row.request_cap * decode_workers, row.concurrency) : row.concurrency;
  const int rack_gpus = rack.find("nvl72") != std::string::npos ? 72 : 8;
  const auto yaml = [&](int prefill_workers) {
    const int gpus = decode_workers * row.decode->gpus_each + (row.disaggregated ? prefill_workers * row.prefill->gpus_each : 0);
    // HGX machines of a run are one fabric; engines of a role share machines as far as they fit.
    int nodes = machines(*row.decode, decode_workers);
    if (row.disaggregated) nodes += machines(*row.prefill, prefill_workers);
    const std::string size = rack_gpus == 72 ? fmt::format("racks: {}", (gpus + rack_gpus - 1) / rack_gpus) : fmt::format("gpus: {}", 8 * nodes);
    std::string text = fmt::format("name: \"{}\"\nrack: {{base: {}, {}}}\nmodel: {}\ndeployment:\n", row.id, rack, size, model);
    if (row.disaggregated) {
      text += pool(row, "prefill", *row.prefill, prefill_workers, chunk, std::max(4, row.concurrency));
      text += pool(row, "decode", *row.decode, decode_workers, chunk, most_requests(row, decode_workers, lanes));
      text += fmt::format("  kv_transfer: {{control: {} us}}\n", hand_over_us);
    } else {
      const int most = most_requests(row, decode_workers, lanes);
      std::string more;
      if (launch.prompt_chunk > 0) more += fmt::format(", prompt_chunk: {}", launch.prompt_chunk);
      if (launch.answer_iterations > 0) more += fmt::format(", answer_iterations: {}", launch.answer_iterations);
      text += pool(row, "aggregated", *row.decode, decode_workers, chunk, launch.most_requests > 0 ? std::min(most, launch.most_requests) : most, more);
    }
    std::string host;
    if (!launch.prompt_graphs) host = "prompt_graphs: false";
    if (launch.padded_tokens > 0) host += fmt::format("{}padded_tokens: {}", host.empty() ? "" : ", ", launch.padded_tokens);
    if (!host.empty()) text += "  host: {" + host + "}\n";
    if (launch.gpu_share > 0) text += fmt::format("  kv_cache: {{gpu_share: {:.3f}{}}}\n", launch.gpu_share, launch.kept_state_mb > 0 ? fmt::format(", kept_state: {:.1f} MB, retention_interval: {}", launch.kept_state_mb, launch.retention_interval) : "");

    // Their router binds every turn of a conversation to the data-parallel rank that its hash names (consistent_hash).
    if (row.workload == "agentx" && dep(*row.decode)) text += "  router: {policy: session_hash}\n";
    if (launch.sustained) text += "  clock: sustained\n";
    if (draft > 0) text += fmt::format("  speculation: {{draft_tokens: {}, acceptance_length: {}}}\n", draft, acceptance_length(row, draft));
    const char* experts = launch.experts_balanced || !(dep(*row.decode) || (row.prefill && dep(*row.prefill))) ? "" : expert_load;
    if (row.workload == "agentx")
      text += fmt::format("workload: {{kind: agentx, trace: generated-v1.0, concurrency: {}, duration: 1 h{}}}\n", row.concurrency, experts);
    else
      text += fmt::format("workload: {{kind: closed_loop, concurrency: {}, requests: {}, warmup_count: 0, duration: 100 h, input: {}, output: {}, range_ratio: {}{}}}\n",
                          row.concurrency, 10 * row.concurrency, row.input_tokens, row.output_tokens, row.range_ratio, experts);
    return text + "network: fluid\n";
  };
  try {
    int workers = row.disaggregated ? row.prefill->workers : 0;
    if (row.disaggregated && workers == 0) {
      const int room = (rack_gpus == 72 ? 72 - decode_workers * row.decode->gpus_each : 64) / row.prefill->gpus_each;
      workers = prefill_engines_for(row, catalog, yaml(1), room);
      result.note = fmt::format("{} prefill engines from the cost model", workers);
    }
    result.yaml = yaml(workers);
    result.front_end_s = costs.get("host", "front_end_us").value * us;
    result.waited_iterations = launch.waited_iterations;
    result.tokens_per_iteration = acceptance_length(row, draft);
  } catch (const UserError& error) {
    return refuse(error.what());
  }
  return result;
}

}  // namespace rackcast
