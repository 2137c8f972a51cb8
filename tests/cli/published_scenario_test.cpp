// A published row becomes the scenario that its launch script ran.
#define BOOST_TEST_MODULE published_scenario
#include <boost/test/unit_test.hpp>

#include "tests/support/program.hpp"

namespace {

const std::string columns = "point_id,date,model,precision,hw,framework,workload,spec,disagg,prefill_gpus,prefill_cfg,decode_gpus,decode_cfg,total_gpus,conc,tpot_mean_ms,source\n";

std::string scenario_of(const std::string& row) {
  const support::TemporaryFolder folder;
  const std::string table = folder.file("rows.csv", columns + "X," + row + ",50,x\n");
  const support::Outcome run = support::shell("env -u RACKCAST_DATA \"$RACKCAST\" validate --data " + table + " --jobs 1 --scenarios " + folder.path);
  BOOST_TEST(run.code == 0, run.err);
  return support::content_of(folder.path + "/X.yaml");
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_closed_loop_runs_ten_requests_a_user_and_no_warm_up) {
  const std::string s = scenario_of("2026-02-03,DeepSeek-R1-0528,fp4,b200,trt,1k1k,none,0,,,8,1w TP8 EP1 dpa=0,8,4");
  BOOST_TEST(has(s, "concurrency: 4, requests: 40, warmup_count: 0"));
  BOOST_TEST(has(s, "input: 1024, output: 1024, range_ratio: 0.8"));
  BOOST_TEST(has(s, "aggregated: {engines: 1, tp: 8,"));
  BOOST_TEST(has(s, "rack: {base: hgx-b200, gpus: 8}"));
}

BOOST_AUTO_TEST_CASE(tensorrt_llm_takes_one_prompt_an_iteration_until_2026_and_8192_tokens_from_then_on) {
  const std::string before = scenario_of("2025-11-02,DeepSeek-R1-0528,fp4,b200,trt,1k1k,none,0,,,8,1w TP8 EP1 dpa=0,8,4");
  const std::string after = scenario_of("2026-02-03,DeepSeek-R1-0528,fp4,b200,trt,1k1k,none,0,,,8,1w TP8 EP1 dpa=0,8,4");
  BOOST_TEST(has(before, "max_batched_tokens: 1152,"));  // 1024 + 4 + 64, rounded up to 64
  BOOST_TEST(has(after, "max_batched_tokens: 8192,"));
}

BOOST_AUTO_TEST_CASE(sglang_runs_as_many_requests_as_its_launch_allows) {
  const std::string s = scenario_of("2026-03-25,DeepSeek-R1-0528,fp8,b200,sglang,1k1k,none,0,,,8,1w TP8 EP1 dpa=0,8,512");
  BOOST_TEST(has(s, "max_batched_tokens: 32768, max_requests_per_rank: 128"));
  const std::string drafting = scenario_of("2026-05-22,DeepSeek-R1-0528,fp8,b200,sglang,1k1k,mtp,0,,,8,1w TP8 EP1 dpa=0,8,512");
  BOOST_TEST(has(drafting, "max_batched_tokens: 16384, max_requests_per_rank: 512"));
}

BOOST_AUTO_TEST_CASE(vllm_replays_prompts_as_graphs_where_its_launch_captures_such_and_the_others_launch_them_kernel_by_kernel) {
  BOOST_TEST(!has(scenario_of("2026-04-20,Kimi-K2.5,fp4,b200,vllm,1k1k,none,0,,,4,1w TP4 EP1 dpa=0,4,4"), "prompt_graphs"));
  BOOST_TEST(has(scenario_of("2026-04-19,Kimi-K2.5,fp4,b200,vllm,1k1k,none,0,,,4,1w TP4 EP1 dpa=0,4,4"), "prompt_graphs: false"));
  BOOST_TEST(has(scenario_of("2026-04-20,Kimi-K2.5,fp4,b200,vllm,8k1k,none,0,,,4,1w TP4 EP1 dpa=0,4,4"), "prompt_graphs: false"));
  BOOST_TEST(has(scenario_of("2026-03-25,DeepSeek-R1-0528,fp8,h200,sglang,1k1k,none,0,,,8,1w TP8 EP1 dpa=0,8,4"), "prompt_graphs: false"));
}

BOOST_AUTO_TEST_CASE(sglang_cuts_experts_under_data_parallel_attention_without_ep_and_keeps_them_whole_with_it) {
  const std::string cut = scenario_of("2026-03-18,DeepSeek-R1-0528,fp8,b200,dynamo-sglang,8k1k,none,1,8,1w TP8 EP1 dpa=1,8,1w TP8 EP8 dpa=1,16,288");
  BOOST_TEST(has(cut, "prefill: {engines: 1, dep: 8,"));
  BOOST_TEST(has(cut, "experts: tensor_parallel"));
  BOOST_TEST(!has(cut.substr(cut.find("decode:")), "experts: tensor_parallel"));
  BOOST_TEST(!has(scenario_of("2026-03-18,DeepSeek-R1-0528,fp8,b200,dynamo-trt,8k1k,none,1,8,1w TP8 EP1 dpa=1,8,1w TP8 EP8 dpa=1,16,288"), "tensor_parallel"));
}

BOOST_AUTO_TEST_CASE(int4_weights_are_the_released_experts_and_fp4_weights_the_quantised_ones) {
  BOOST_TEST(has(scenario_of("2026-03-24,Kimi-K2.5,int4,h200,vllm,1k1k,none,0,,,8,1w TP8 EP1 dpa=0,8,4"), "model: kimi-k2.5-int4\n"));
  BOOST_TEST(has(scenario_of("2026-04-20,Kimi-K2.5,fp4,b200,vllm,1k1k,none,0,,,4,1w TP4 EP1 dpa=0,4,4"), "model: kimi-k2.5\n"));
}

BOOST_AUTO_TEST_CASE(prompts_in_fp8_run_at_the_clock_of_long_work_and_those_in_fp4_at_the_burst_s) {
  BOOST_TEST(has(scenario_of("2026-03-25,DeepSeek-R1-0528,fp8,h200,sglang,1k1k,none,0,,,8,1w TP8 EP1 dpa=0,8,4"), "clock: sustained"));
  BOOST_TEST(!has(scenario_of("2026-02-03,DeepSeek-R1-0528,fp4,b200,trt,1k1k,none,0,,,8,1w TP8 EP1 dpa=0,8,4"), "clock: sustained"));
  BOOST_TEST(has(scenario_of("2026-06-03,DeepSeek-V4-Pro,fp4,gb300,dynamo-sglang,8k1k,mtp,1,4,1xDEP4,8,1xDEP8,12,256"), "clock: sustained"));
}

BOOST_AUTO_TEST_CASE(experts_of_v4_are_uneven_where_the_launch_does_not_move_them) {
  BOOST_TEST(has(scenario_of("2026-06-03,DeepSeek-V4-Pro,fp4,gb300,dynamo-sglang,8k1k,mtp,1,4,1xDEP4,8,1xDEP8,12,256"), "experts: {skew: power_law, exponent: 1.01}"));
  BOOST_TEST(!has(scenario_of("2026-09-03,DeepSeek-V4-Pro,fp4,b200,vllm,8k1k,none,0,,,8,1xDEP8,8,512"), "experts:"));
}

BOOST_AUTO_TEST_CASE(prompt_engines_of_v4_take_what_their_recipes_give_them) {
  BOOST_TEST(has(scenario_of("2026-06-03,DeepSeek-V4-Pro,fp4,gb300,dynamo-sglang,8k1k,mtp,1,4,1xDEP4,8,1xDEP8,12,256"), "prefill: {engines: 1, dep: 4, max_batched_tokens: 8192,"));
  BOOST_TEST(has(scenario_of("2026-05-22,DeepSeek-V4-Pro,fp4,gb200,dynamo-vllm,8k1k,none,1,8,1xDEP8,8,1xDEP8,16,256"), "prefill: {engines: 1, dep: 8, max_batched_tokens: 32768,"));
}

BOOST_AUTO_TEST_CASE(vllm_on_one_machine_pads_ranks_to_the_graphs_of_its_prompts) {
  BOOST_TEST(has(scenario_of("2026-09-03,DeepSeek-V4-Pro,fp4,b200,vllm,8k1k,none,0,,,8,1xDEP8,8,512"), "max_batched_tokens: 2048, max_requests_per_rank: 64}\n  host: {padded_tokens: 2048}"));
}

BOOST_AUTO_TEST_CASE(a_hand_over_takes_the_control_time_of_the_cost_file) {
  BOOST_TEST(has(scenario_of("2026-05-22,DeepSeek-V4-Pro,fp4,gb200,dynamo-vllm,8k1k,none,1,8,1xDEP8,8,1xDEP8,16,256"), "kv_transfer: {control: 110000 us}"));
}
