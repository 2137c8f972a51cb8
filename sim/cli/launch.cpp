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

int prompt_budget(const PublishedRow& row) {
  if (row.framework == "vllm") return row.model.find("V4") != std::string::npos ? 32768 : 16384;
  // Context servers of TensorRT-LLM have one budget whatever their attention.
  const bool data_parallel = row.framework == "trtllm" || dep(*row.prefill);
  for (const PromptBudget& b : prompt_budgets)
    if (b.framework == row.framework && row.gpu.rfind(b.gpus, 0) == 0 && b.fp4 == fp4(row) && (b.input_tokens == 0 || b.input_tokens == row.input_tokens) &&
        b.data_parallel == data_parallel)
      return b.tokens;
  return 0;
}

}  // namespace

Launch launch_of(const PublishedRow& row) {
  Launch launch;
  // vLLM compiles prompts and replays them piecewise; SGLang and TensorRT-LLM run those of latent attention eagerly by default.
  // Prefill engines of vLLM's disaggregated recipes run eagerly, too.
  launch.prompt_graphs = row.workload != "fixed" || (row.framework == "vllm" && !row.disaggregated);
  // Schedulers work one iteration ahead (SGLang's overlap schedule, TensorRT-LLM's overlap scheduler, vLLM's asynchronous
  // scheduling): when a request comes, the iteration after the one under way is already launched.
  launch.waited_iterations = 1;
  if (!row.disaggregated && row.workload == "fixed") {
    if (row.framework == "sglang") sglang(row, launch);
    if (row.framework == "trtllm") tensorrt_llm(row, launch);
  }
  if (row.disaggregated && row.workload == "fixed") {
    if (const int tokens = prompt_budget(row); tokens > 0) launch.prompt_tokens = tokens;
    // SGLang's low-latency decode engines on racks look for requests every 10 iterations.
    if (row.framework == "sglang" && row.gpu[0] == 'g' && !dep(*row.prefill)) launch.waited_iterations += 10 / 2.0;
  }
  if (row.prefill_chunk > 0) launch.prompt_tokens = row.prefill_chunk;
  return launch;
}

}  // namespace rackcast
