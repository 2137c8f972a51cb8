#define BOOST_TEST_MODULE published_rows
#include "analysis/published_rows.hpp"

#include <boost/test/unit_test.hpp>

#include "analysis/recipes.hpp"
#include "sim/base/error.hpp"

using namespace rackcast;

namespace {

const char* silicon_head =
    "id,silicon_data_source,backend,model_path,system,precision,mode,isl,osl,tp_size,attention_dp_size,moe_tp_size,moe_ep_size,"
    "prefill_num_workers,prefill_tp_size,prefill_attention_dp_size,prefill_moe_tp_size,prefill_moe_ep_size,"
    "decode_num_workers,decode_tp_size,decode_attention_dp_size,decode_moe_tp_size,decode_moe_ep_size,silicon_ttft_ms,silicon_tpot_ms\n";

PublishedRow silicon(const std::string& line) { return read_published(CsvTable::parse("s.csv", silicon_head + line)).at(0); }

const char* recipe_head = "config_key,framework,precision,seq,spec,topology,conc_list,recipe_file\n";

}  // namespace

BOOST_AUTO_TEST_CASE(a_disaggregated_row_with_all_columns_needs_nothing_more_than_its_speculation) {
  const PublishedRow r = silicon("a,silicon_concurrency=2048; measured=2026-02-09T0,sglang,deepseek-ai/DeepSeek-V3,gb200,fp8,disagg,1024,1024,,,,,2,1,8,1,8,1,1,32,1,32,1598.3,20.9\n");
  BOOST_TEST(r.concurrency == 2048);
  BOOST_TEST(r.date == "2026-02-09");
  BOOST_TEST(r.prefill->workers == 2);
  BOOST_TEST(r.prefill->gpus_each == 8);
  BOOST_TEST(r.prefill->attention_dp.value());
  BOOST_TEST(r.decode->gpus_each == 32);
  BOOST_TEST(r.tpot_s.value() == 0.0209, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(!r.draft_tokens.has_value());
}

BOOST_AUTO_TEST_CASE(experts_are_cut_where_a_row_says_data_parallel_attention_over_moe_tp) {
  const char* const cut = "a,silicon_concurrency=288,sglang,deepseek-ai/DeepSeek-V3,b200_sxm,fp8,disagg,8192,1024,,,,,1,1,8,8,1,1,1,8,1,8,19560,30.9\n";
  const PublishedRow r = silicon(cut);
  BOOST_TEST(r.prefill->experts_cut);
  BOOST_TEST(!r.decode->experts_cut);
}

BOOST_AUTO_TEST_CASE(a_width_of_tensor_times_expert_is_read_as_the_engine_it_was) {
  const PublishedRow r = silicon("a,silicon_concurrency=16,trtllm,deepseek-ai/DeepSeek-R1,h200_sxm,fp8,agg,1024,1024,64,1,8,8,,,,,,,,,,,918,14.2\n");
  BOOST_TEST(r.gpu == "h200");
  BOOST_TEST(r.decode->gpus_each == 8);
  BOOST_TEST(r.decode->expert_parallel == 8);
}

BOOST_AUTO_TEST_CASE(one_figure_in_both_roles_is_the_total) {
  const PublishedRow r = silicon("a,silicon_concurrency=128,sglang,deepseek-ai/DeepSeek-R1,gb200,fp8,disagg,8192,1024,,,,,,72,1,72,1,,72,1,72,1,3808,32.4\n");
  BOOST_TEST(r.total_gpus == 72);
  BOOST_TEST(r.decode->gpus_each == 0);
}

BOOST_AUTO_TEST_CASE(a_recipe_fills_workers_and_speculation_by_deployment_columns) {
  PublishedRow r = silicon("a,silicon_concurrency=1229,trtllm,deepseek-ai/DeepSeek-R1,gb300,fp4,disagg,8192,1024,,,,,,2,1,1,2,,16,1,8,2,4306,18.9\n");
  const auto recipes = read_recipes(CsvTable::parse("r.csv", std::string(recipe_head) +
      "dsr1-fp4-gb300-dynamo-trt,dynamo-trt,fp4,8192/1024,none,9xDEP2+1xDEP16,1229,stp/ctx9_mtp0.yaml\n"
      "dsr1-fp4-gb300-dynamo-trt,dynamo-trt,fp4,8192/1024,mtp,9xDEP2+1xDEP8,1229,mtp/ctx9_mtp3.yaml\n"));
  BOOST_TEST(complete_row(r, recipes) == "deployment of recipe r.csv:2");
  BOOST_TEST(r.prefill->workers == 9);
  BOOST_TEST(r.decode->workers == 1);
  BOOST_TEST(r.decode->attention_dp.value());
  BOOST_TEST(r.draft_tokens.value() == 0);
}

BOOST_AUTO_TEST_CASE(without_any_recipe_wide_experts_mean_data_parallel_attention_and_no_speculation) {
  PublishedRow r = silicon("a,silicon_concurrency=7,trtllm,deepseek-ai/DeepSeek-R1,gb300,fp4,disagg,8192,1024,,,,,,2,1,1,2,,32,1,16,2,4306,18.9\n");
  complete_row(r, {});
  BOOST_TEST(r.decode->attention_dp.value());
  BOOST_TEST(r.decode->workers == 1);
  BOOST_TEST(r.prefill->workers == 0);
  BOOST_TEST(r.draft_tokens.value() == 0);
}

BOOST_AUTO_TEST_CASE(topologies_are_read_and_others_refused) {
  PublishedEngines p, d;
  BOOST_TEST(parse_topology("1xDEP2+3xTP8/EP8", p, d));
  BOOST_TEST((p.gpus_each == 2 && p.attention_dp.value() && d.workers == 3 && d.expert_parallel == 8 && !d.attention_dp.value()));
  BOOST_TEST(parse_topology("agg 1xDEP8+hicache", p, d));
  BOOST_TEST((p.workers == 0 && d.gpus_each == 8));
  BOOST_TEST(parse_topology("1xTP1/EP8/dpa+2xTP1/EP8/dpa", p, d));
  BOOST_TEST((p.gpus_each == 8 && d.workers == 2 && d.attention_dp.value()));
  BOOST_TEST(!parse_topology("something", p, d));
}

BOOST_AUTO_TEST_CASE(one_run_published_twice_counts_once_and_the_fuller_row_stays) {
  const std::string poor = "a,silicon_concurrency=5,trtllm,deepseek-ai/DeepSeek-R1,gb300,fp4,disagg,8192,1024,,,,,,2,1,1,2,,16,1,8,2,100,10\n";
  const std::string rich = "b,silicon_concurrency=5,trtllm,deepseek-ai/DeepSeek-V3,gb300,fp4,disagg,8192,1024,,,,,3,1,2,1,2,1,1,16,1,16,100,10\n";
  const auto rows = without_duplicates(read_published(CsvTable::parse("s.csv", silicon_head + poor + rich)));
  BOOST_TEST(rows.size() == 1u);
  BOOST_TEST(rows[0].id == "b");
}

BOOST_AUTO_TEST_CASE(a_published_point_says_its_own_speculation_and_configuration) {
  const auto rows = read_published(CsvTable::parse("p.csv",
      "point_id,date,model,precision,hw,framework,workload,spec,disagg,prefill_gpus,prefill_cfg,decode_gpus,decode_cfg,total_gpus,conc,total_tok_s_gpu,p90_tok_s_user,source\n"
      "P1,2026-09-22,DeepSeek-V4.1-Flash,fp4,gb300,sglang,agentx-1m,dspark5 (AL 3.51),0,,,2,agg TP2/EP2 chunk8192 cap64,2,64,142565.09,66.63,PR\n"
      "P2,2026-05-22,DeepSeek-R1-0528,fp4,gb200,dynamo-trt,8k1k,mtp,1,24,6w TP1 EP1 dpa=1,48,1w TP1 EP1 dpa=1,72,512,1,,x\n"));
  BOOST_TEST(rows[0].draft_tokens.value() == 5);
  BOOST_TEST(rows[0].acceptance_length == 3.51);
  BOOST_TEST((rows[0].prefill_chunk == 8192 && rows[0].request_cap == 64 && rows[0].decode->expert_parallel == 2));
  BOOST_TEST((rows[1].prefill->gpus_each == 4 && rows[1].decode->gpus_each == 48));
}

BOOST_AUTO_TEST_CASE(a_table_of_another_kind_is_refused) {
  BOOST_CHECK_THROW(read_published(CsvTable::parse("x.csv", "a,b\n1,2\n")), UserError);
}

BOOST_AUTO_TEST_CASE(the_batch_in_a_recipe_file_is_the_request_limit_of_a_decode_rank) {
  PublishedRow r = silicon("a,silicon_concurrency=666,trtllm,deepseek-ai/DeepSeek-R1,gb300,fp8,disagg,8192,1024,,,,,,4,1,1,4,,16,1,4,4,7226,22.8\n");
  const auto recipes = read_recipes(CsvTable::parse("r.csv", std::string(recipe_head) +
      "dsr1-fp8-gb300-dynamo-trt,dynamo-trt,fp8,8192/1024,none,4xDEP4+1xDEP16,666,stp/ctx4_gen1_dep16_batch32_eplb0_mtp0_666.yaml\n"));
  complete_row(r, recipes);
  BOOST_TEST(r.decode->most_requests == 32);
  BOOST_TEST(r.prefill->workers == 4);
}

BOOST_AUTO_TEST_CASE(rows_of_the_numbered_dump_run_without_speculation) {
  const PublishedRow r = silicon("a,db-dump/2026-04-27; config_id=392; silicon_concurrency=24,trtllm,deepseek-ai/DeepSeek-V3,gb300,fp8,disagg,8192,1024,,,,,1,1,4,1,4,4,8,1,1,8,4459,9.8\n");
  BOOST_TEST(r.draft_tokens.value() == 0);
  BOOST_TEST(r.config == "392");
}

BOOST_AUTO_TEST_CASE(of_two_runs_of_one_deployment_the_one_beside_a_run_without_speculation_has_it) {
  const std::string dump = "a,db-dump/2026-04-27; config_id=392; silicon_concurrency=24,trtllm,deepseek-ai/DeepSeek-V3,gb300,fp8,disagg,8192,1024,,,,,1,1,4,1,4,4,8,1,1,8,4459,9.8\n";
  const std::string file = "b,silicon_concurrency=24,trtllm,deepseek-ai/DeepSeek-R1,gb300,fp8,disagg,8192,1024,,,,,,4,1,1,4,,8,1,2,4,2735,5.5\n";
  const auto recipes = read_recipes(CsvTable::parse("r.csv", std::string(recipe_head) +
      "dsr1-fp8-gb300-dynamo-trt,dynamo-trt,fp8,8192/1024,none,1xDEP4+4xTP8/EP8,24,stp/ctx1_gen4_tep8_batch4_eplb0_mtp0_24.yaml\n"
      "dsr1-fp8-gb300-dynamo-trt,dynamo-trt,fp8,8192/1024,mtp,1xDEP4+4xTP8/EP8,8 24,mtp/ctx1_gen4_tep8_batch4_eplb0_mtp3_24.yaml\n"));
  auto rows = read_published(CsvTable::parse("s.csv", silicon_head + dump + file));
  for (PublishedRow& row : rows) complete_row(row, recipes);
  BOOST_TEST(rows[1].draft_known_twice);
  settle_speculation(rows, recipes);
  BOOST_TEST(rows[0].draft_tokens.value() == 0);
  BOOST_TEST(rows[1].draft_tokens.value() == 3);
}

BOOST_AUTO_TEST_CASE(tensor_parallelism_wider_than_a_node_is_all_gpus_of_a_disaggregated_run) {
  const PublishedRow r = silicon("a,silicon_concurrency=144,trtllm,deepseek-ai/DeepSeek-R1,gb200,fp4,agg,1024,1024,36,1,36,1,,,,,,,,,,,1079,7.7\n");
  BOOST_TEST(r.disaggregated);
  BOOST_TEST(r.total_gpus == 36);
  BOOST_TEST(r.decode->gpus_each == 0);
}

BOOST_AUTO_TEST_CASE(a_run_rounded_differently_by_two_exports_counts_once) {
  const std::string one = "a,silicon_concurrency=5,trtllm,deepseek-ai/DeepSeek-R1,gb300,fp4,disagg,8192,1024,,,,,,2,1,1,2,,16,1,8,2,100.00012,10.000001\n";
  const std::string two = "b,silicon_concurrency=5,trtllm,deepseek-ai/DeepSeek-V3,gb300,fp4,disagg,8192,1024,,,,,3,1,2,1,2,1,1,16,1,16,100.0001,10\n";
  BOOST_TEST(without_duplicates(read_published(CsvTable::parse("s.csv", silicon_head + one + two))).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_row_that_only_says_that_it_drafts_takes_the_depth_and_the_experts_of_its_recipe) {
  PublishedRow r;
  r.model = "DeepSeek-V4-Pro";
  r.gpu = "gb300";
  r.framework = "sglang";
  r.precision = "fp4";
  r.workload = "fixed";
  r.input_tokens = 8192;
  r.output_tokens = 1024;
  r.concurrency = 8192;
  r.disaggregated = true;
  parse_topology("8xDEP4+1xDEP8", r.prefill.emplace(), r.decode.emplace());
  r.draft_tokens = 3;
  r.draft_depth_said = false;
  const auto recipes = read_recipes(CsvTable::parse("r.csv", std::string(recipe_head) +
      "dsv4-fp4-gb300-dynamo-sglang-mtp,dynamo-sglang,fp4,8192/1024,mtp,8xDEP4+1xDEP8,8192,8k1k/disagg-high-conc-8p1d-dep4-dep8-mtp.yaml\n"));
  PublishedRow said = r;
  said.draft_depth_said = true;
  complete_row(r, recipes);
  complete_row(said, recipes);
  BOOST_TEST(r.draft_tokens.value() == 1);
  BOOST_TEST(said.draft_tokens.value() == 3);
  BOOST_TEST(!r.experts_balanced.has_value());
  const auto balanced = read_recipes(CsvTable::parse("r.csv", std::string(recipe_head) +
      "dsv4-fp4-gb300-dynamo-sglang-mtp,dynamo-sglang,fp4,8192/1024,mtp,8xDEP4+1xDEP8,8192,ctx8dep4_gen1dep8_batch512_eplb384_mtp1.yaml\n"));
  complete_row(r, balanced);
  BOOST_TEST(r.experts_balanced.value());
}
