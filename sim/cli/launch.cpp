// Source unless said otherwise: launch scripts of SemiAnalysisAI/InferenceX (benchmarks/, at the dates of the rows).
#include "sim/cli/launch.hpp"

#include <algorithm>
#include <string_view>

namespace rackcast {

namespace {

bool dep(const PublishedEngines& e) { return e.attention_dp.value_or(false) && e.gpus_each > 1; }

bool fp4(const PublishedRow& row) { return row.precision == "fp4" || row.precision == "nvfp4"; }

// dsr1_*_h200.sh, dsr1_fp8_b200.sh, dsr1_fp4_b200.sh and their b300 twins. On Blackwell the scheduler looks for new requests
// every 10 iterations (below 16 users, and in FP8 launches of four GPUs) or 30: half of it on average.
void sglang(const PublishedRow& row, Launch& launch) {
  const bool hopper = row.gpu[0] == 'h', four = row.decode->gpus_each == 4;
  const bool few = row.concurrency < 16 || (four && !fp4(row) && row.draft_tokens.value_or(0) == 0);
  if (!hopper) launch.waited_iterations += (few ? 10 : 30) / 2.0;
  const bool drafts = row.draft_tokens.value_or(0) > 0;  // dsr1_*_mtp.sh
  if (fp4(row) || (drafts && !hopper)) {
    launch.prompt_tokens = 16384;
    launch.most_requests = drafts ? 512 : 256;
  } else if (hopper) {
    launch.prompt_tokens = 32768;
    launch.most_requests = row.input_tokens == 1024 && row.output_tokens == 1024 ? 512 : 256;
  } else {
    launch.prompt_tokens = four ? 8192 : 32768;
    launch.most_requests = four ? 32 : 128;
  }
}

// dsr1_*_trt.sh. max_num_tokens holds one prompt and a token of every user, since 2026-01-21 at least 8,192. With
// data-parallel attention a prompt waits until every rank has one, for at most timeout_iters 60 iterations. FP8 launches of
// 1K/1K tokens and 64 users or more wait since 2026-01-29 for 0.8 x max_num_tokens of prompts, for at most 40 iterations.
// stream_interval 10 does not hold the first token back: a response is made of it at once (_handle_responses, PR #5284).
void tensorrt_llm(const PublishedRow& row, Launch& launch) {
  const int all = (row.concurrency + row.input_tokens + 64 + 63) / 64 * 64;
  launch.prompt_tokens = row.date >= "2026-01-21" ? std::max(8192, all) : all;
  constexpr double timeout = 60, batch_timeout = 40;
  if (dep(*row.decode)) launch.waited_iterations += timeout / 2;
  const bool batched = row.gpu[0] == 'b' && !fp4(row) && row.input_tokens == 1024 && row.output_tokens == 1024 && row.concurrency >= 64 && row.date >= "2026-01-29";
  if (batched) launch.waited_iterations += batch_timeout / 2;
}

bool v4(const PublishedRow& row) { return row.model.find("V4") != std::string::npos; }

// dsv4_fp4_b200_vllm.sh, dsv4_fp4_b300_vllm.sh and their _mtp twins (2026-07).
void vllm_v4(const PublishedRow& row, Launch& launch) {
  const bool drafts = row.draft_tokens.value_or(0) > 0;
  if (row.gpu == "b200") launch.prompt_tokens = drafts ? 2 * row.input_tokens : row.input_tokens == 8192 && row.concurrency <= 128 ? row.input_tokens : 2048;
  if (row.gpu == "b300") launch.prompt_tokens = dep(*row.decode) ? 2048 : 2 * row.input_tokens;
  // Graphs of prompts, too (FULL_AND_PIECEWISE, max-cudagraph-capture-size 2048): all ranks run the size of the largest.
  if (dep(*row.decode)) launch.padded_tokens = 2048;
}

// dsv4_fp4_b200_vllm_mtp.sh and its b300 twin under single_node/agentic (2026-08). A finished request leaves its window and
// compressor states in blocks of the pool: 26 of V4-Pro (two groups of windows and one of each compressor, of blocks of 64, 4
// and 8 tokens, for the last 128 tokens and a block more for the draft), 1,308,672 B each (vLLM PR #48993, issue #54703).
// Weights and all else leave 26.46 GiB of 0.90 x 189,471 MiB on GB200 there: 5.0 GB less than weights and activations alone.
constexpr double other_buffers_gb = 5.0;
void vllm_agentx(const PublishedRow& row, Launch& launch) {
  if (row.model.find("V4.1") != std::string::npos) return;
  launch.gpu_share = row.gpu == "b200" ? 0.90 : dep(*row.decode) && row.decode->gpus_each == 8 ? 0.92 : 0.95;
  if (dep(*row.decode)) launch.gpu_share -= other_buffers_gb / (row.gpu == "b200" ? 192.3 : row.gpu == "gb200" ? 198.7 : 288.0);
  constexpr double block_mb = 1.308672, blocks = 26;
  launch.kept_state_mb = block_mb * blocks;
  launch.retention_interval = 32768;  // VLLM_PREFIX_CACHE_RETENTION_INTERVAL
  if (!dep(*row.decode)) return;
  launch.prompt_tokens = row.gpu == "b300" && row.decode->gpus_each == 8 ? 16384 : 8192;
  // Since then: --prefill-schedule-interval 8, --long-prefill-token-threshold 512.
  if (row.date >= (row.gpu == "b300" ? "2026-08-11" : "2026-08-17")) {
    launch.answer_iterations = 8 - 1;
    launch.prompt_chunk = 512;
  }
}

// SGLang's of V4.1-Flash (InferenceX pulls #3341, #3342, #3344, #3346, 2026-09-21): --prefill-decode-interval, static memory,
// prompt chunks.
void sglang_agentx_v41(const PublishedRow& row, Launch& launch) {
  if (row.date < "2026-09-21") return;
  const bool b300_wide = row.gpu == "b300" && row.decode->gpus_each == 2 && row.concurrency >= 32;
  launch.answer_iterations = b300_wide ? 4 : 16;
  launch.gpu_share = b300_wide ? 0.85 : row.gpu == "b300" || row.gpu == "h200" ? 0.70 : 0.80;
  launch.prompt_tokens = row.gpu == "gb300" && row.decode->gpus_each == 2 && row.concurrency >= 64 ? 8192 : 4096;
}

// Prompt tokens that a prefill engine of a disaggregated run takes an iteration (of a rank with data-parallel attention):
// chunked-prefill-size over the ranks, max_num_tokens, max-num-batched-tokens of the prefill section in the recipes of
// NVIDIA/srt-slurm (recipes/, 2026) and, for Kimi-K2.5 on vLLM, of SemiAnalysisAI/InferenceX. 0: as any other.
struct PromptBudget {
  std::string_view framework, gpus;  // gpus: names that start so
  bool fp4;
  int input_tokens;                  // 0: any
  bool data_parallel;
  int tokens;
};
constexpr PromptBudget prompt_budgets[] = {
    {"trtllm", "b", true, 1024, true, 10240},    {"trtllm", "b", true, 8192, true, 16896},    {"trtllm", "b200", false, 1024, true, 16384},
    {"trtllm", "b", false, 0, true, 8320},       {"trtllm", "gb", true, 8192, true, 16640},   {"trtllm", "gb", true, 0, true, 16384},
    {"trtllm", "gb", false, 0, true, 16384},     {"trtllm", "h200", false, 1024, true, 8192}, {"trtllm", "h200", false, 8192, true, 16640},
    {"sglang", "gb", true, 0, true, 16384},      {"sglang", "gb", true, 8192, false, 131072}, {"sglang", "gb", true, 0, false, 8192},
    {"sglang", "gb", false, 0, true, 16384},     {"sglang", "gb300", false, 8192, false, 32768}, {"sglang", "gb", false, 0, false, 8192},
    {"sglang", "b", true, 0, true, 8192},        {"sglang", "b", false, 0, true, 8192},       {"sglang", "b", false, 0, false, 32768},
    {"sglang", "h200", false, 8192, false, 32768}, {"sglang", "h200", false, 0, false, 163840}, {"sglang", "h200", false, 0, true, 8192}};

// The same of V4-Pro's recipes (InferenceX, multi_node/srt-slurm-recipes, deepseek-v4/8k1k): chunked-prefill-size 32,768 an
// engine of four GPUs and 65,536 of eight on SGLang, max-num-batched-tokens a rank on vLLM.
int v4_prompt_budget(const PublishedRow& row) {
  const int gpus = row.prefill->gpus_each;
  if (row.framework == "sglang") return dep(*row.prefill) ? 8192 : 8192 * gpus;
  if (row.framework == "vllm") return row.gpu == "gb300" || row.draft_tokens.value_or(0) > 0 ? 16384 : 32768;
  return 0;
}

int prompt_budget(const PublishedRow& row) {
  if (v4(row)) return v4_prompt_budget(row);
  if (row.framework == "vllm") return 16384;
  // Context servers of TensorRT-LLM have one budget whatever their attention.
  const bool data_parallel = row.framework == "trtllm" || dep(*row.prefill);
  for (const PromptBudget& b : prompt_budgets)
    if (b.framework == row.framework && row.gpu.rfind(b.gpus, 0) == 0 && b.fp4 == fp4(row) && (b.input_tokens == 0 || b.input_tokens == row.input_tokens) &&
        b.data_parallel == data_parallel)
      return b.tokens;
  return 0;
}

// vLLM captures graphs of up to 2 x max-num-seqs and at most 512 tokens, so that iterations with longer prompts are launched
// kernel by kernel. Launches with max-cudagraph-capture-size 2048: Kimi-K2.5 in FP4 on B200 since 2026-04-20 (pull #1047), V4.
bool vllm_captures(const PublishedRow& row, const Launch& launch) {
  constexpr int captured = 2048, by_default = 512;
  const bool wide = v4(row) || (row.gpu == "b200" && fp4(row) && row.date >= "2026-04-20");
  return std::min(row.input_tokens, launch.prompt_tokens) <= (wide ? captured : by_default);
}

}  // namespace

Launch launch_of(const PublishedRow& row) {
  Launch launch;
  // SGLang and TensorRT-LLM run prompts of latent attention eagerly by default. So do prefill engines of vLLM's disaggregated
  // recipes and its agentic launches (graphs of FULL_DECODE_ONLY), but for tensor-parallel ones on B200.
  launch.prompt_graphs = row.framework == "vllm" && !row.disaggregated && row.workload != "fixed" && row.gpu == "b200" && !dep(*row.decode);
  // Schedulers work one iteration ahead (SGLang's overlap schedule, TensorRT-LLM's overlap scheduler, vLLM's asynchronous
  // scheduling): when a request comes, the iteration after the one under way is already launched.
  launch.waited_iterations = 1;
  if (!row.disaggregated && row.workload == "fixed") {
    if (row.framework == "sglang") sglang(row, launch);
    if (row.framework == "trtllm") tensorrt_llm(row, launch);
    if (row.framework == "vllm" && v4(row)) vllm_v4(row, launch);
    if (row.framework == "vllm") launch.prompt_graphs = vllm_captures(row, launch);
  }
  if (row.disaggregated && row.workload == "fixed") {
    if (const int tokens = prompt_budget(row); tokens > 0) launch.prompt_tokens = tokens;
    // SGLang's low-latency decode engines on racks look for requests every 10 iterations.
    if (row.framework == "sglang" && row.gpu[0] == 'g' && !dep(*row.prefill)) launch.waited_iterations += 10 / 2.0;
  }
  if (row.framework == "vllm" && row.workload == "agentx" && v4(row)) vllm_agentx(row, launch);
  if (row.framework == "sglang" && row.workload == "agentx" && row.model.find("V4.1") != std::string::npos) sglang_agentx_v41(row, launch);
  // Prompts multiplied in FP8 or BF16 meet the power cap, as such kernels do that were timed for seconds (H200, kernels/EXPERTS.md);
  // prompt engines of the models with FP4 rows keep the burst's rate in the published runs. V4's FP4 experts multiply FP8 rows.
  launch.sustained = row.workload == "fixed" && (v4(row) || !fp4(row));
  // V4-Pro's launches leave experts where they are, but for TensorRT-LLM's with eplb slots and vLLM's on one B200 machine
  // (--enable-eplb since 2026-06-05).
  if (v4(row)) launch.experts_balanced = row.experts_balanced.value_or(row.framework == "vllm" && row.gpu == "b200" && !row.disaggregated);
  if (row.prefill_chunk > 0) launch.prompt_tokens = row.prefill_chunk;
  return launch;
}

}  // namespace rackcast
