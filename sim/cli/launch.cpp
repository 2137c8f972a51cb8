// Source unless said otherwise: launch scripts of SemiAnalysisAI/InferenceX (benchmarks/, at the dates of the rows).
#include "sim/cli/launch.hpp"

#include <algorithm>

namespace rackcast {

namespace {

bool dep(const PublishedEngines& e) { return e.attention_dp.value_or(false) && e.gpus_each > 1; }

bool fp4(const PublishedRow& row) { return row.precision == "fp4" || row.precision == "nvfp4"; }

// dsr1_*_h200.sh, dsr1_fp8_b200.sh, dsr1_fp4_b200.sh and their b300 twins. On Blackwell the scheduler looks for new requests
// every 10 iterations (below 16 users, and in FP8 launches of four GPUs) or 30: half of it on average.
void sglang(const PublishedRow& row, Launch& launch) {
  const bool hopper = row.gpu[0] == 'h', four = row.decode->gpus_each == 4;
  const bool few = row.concurrency < 16 || (four && !fp4(row));
  if (!hopper) launch.waited_iterations += (few ? 10 : 30) / 2.0;
  if (fp4(row)) {
    launch.prompt_tokens = 16384;
    launch.most_requests = 256;
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

}  // namespace

Launch launch_of(const PublishedRow& row) {
  Launch launch;
  // vLLM compiles prompts and replays them piecewise; SGLang and TensorRT-LLM run those of latent attention eagerly by default.
  launch.prompt_graphs = row.framework == "vllm" || row.workload != "fixed";
  // Schedulers work one iteration ahead (SGLang's overlap schedule, TensorRT-LLM's overlap scheduler, vLLM's asynchronous
  // scheduling): when a request comes, the iteration after the one under way is already launched.
  launch.waited_iterations = 1;
  if (!row.disaggregated && row.workload == "fixed") {
    if (row.framework == "sglang") sglang(row, launch);
    if (row.framework == "trtllm") tensorrt_llm(row, launch);
  }
  if (row.prefill_chunk > 0) launch.prompt_tokens = row.prefill_chunk;
  return launch;
}

}  // namespace rackcast
