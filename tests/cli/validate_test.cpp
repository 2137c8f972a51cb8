#define BOOST_TEST_MODULE validate_verb
#include <boost/test/unit_test.hpp>

#include "tests/support/program.hpp"

using support::shell;

namespace {

// The columns of published points, one run of one engine.
const char* planned =
    "point_id,date,model,precision,hw,framework,workload,spec,disagg,prefill_gpus,prefill_cfg,decode_gpus,decode_cfg,total_gpus,conc,tpot_mean_ms,ttft_mean_s,source\n"
    "R1,2026-05-19,DeepSeek-R1-0528,fp4,b200,trt,8k1k,none,0,,,4,1w TP4 EP4 dpa=0,4,4,7.978,0.2513,x\n"
    "R2,2026-05-19,DeepSeek-R1-0528,fp4,b200,trt,8k1k,none,0,,,4,1w TP4 EP4 dpa=0,4,8,9.5,0.3,x\n"
    "R3,2026-05-19,DeepSeek-R1-0528,fp4,b200,trt,8k1k,none,0,,,4,1w TP4 EP4 dpa=0,4,16,13.6701,0.3885,x\n";

}  // namespace

BOOST_AUTO_TEST_CASE(the_quick_suite_keeps_its_bounds) {
  const support::Outcome run = shell("env -u RACKCAST_DATA \"$RACKCAST\" validate ci");
  BOOST_TEST(run.code == 0);
  BOOST_TEST(run.out.find("18 of 18 rows predicted") != std::string::npos);
  BOOST_TEST(run.out.find("MISSED") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_bound_that_is_missed_is_exit_code_1) {
  BOOST_TEST(shell("env -u RACKCAST_DATA \"$RACKCAST\" validate ci --bound 0.001").code == 1);
}

BOOST_AUTO_TEST_CASE(a_table_can_be_predicted_first_and_compared_later) {
  const support::TemporaryFolder folder;
  const std::string plan = folder.file("plan.csv", planned), predictions = folder.path + "/predictions.csv", costs = folder.path + "/costs.yaml";
  const support::Outcome predicted = shell("env -u RACKCAST_DATA \"$RACKCAST\" validate --predict " + plan + " > " + predictions);
  BOOST_TEST(predicted.code == 0);
  const std::string text = support::content_of(predictions);
  BOOST_TEST(text.find("id,metric,predicted") == 0u);
  BOOST_TEST(text.find("R3,tpot,") != std::string::npos);
  const support::Outcome compared = shell("\"$RACKCAST\" validate --compare " + predictions + " --data " + plan + " --costs " + costs);
  BOOST_TEST(compared.code == 0);
  BOOST_TEST(compared.out.find("3 of 3 rows predicted") != std::string::npos);
  BOOST_TEST(support::content_of(costs).find("basis: measured") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_a_row_leaves_out_is_refused_with_a_reason) {
  const support::TemporaryFolder folder;
  const std::string rows = folder.file("rows.csv", "point_id,date,model,precision,hw,framework,workload,spec,disagg,prefill_cfg,decode_cfg,total_gpus,conc,tpot_mean_ms,source\n"
                                                   "X1,,DeepSeek-R1,fp4,b200,trt,8k1k,none,0,,1w TP4 EP4 dpa=0,4,,8,x\nX2,,Llama,fp8,b200,trt,8k1k,none,0,,1w TP4 EP4 dpa=0,4,4,8,x\n");
  const support::Outcome run = shell("env -u RACKCAST_DATA \"$RACKCAST\" validate --data " + rows);
  BOOST_TEST(run.out.find("refused: the row does not say its concurrency") != std::string::npos);
  BOOST_TEST(run.out.find("refused: no model file for Llama") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(sensitivity_says_what_faster_parts_would_give) {
  const support::Outcome run = shell("\"$RACKCAST\" sensitivity scenarios/standard.yaml --metric tpot_mean_s --jobs 2 --set workload.kind=closed_loop --set workload.input=1K --set workload.output=64 "
                                     "--set workload.requests=2000 --set workload.concurrency=64 --set network=fluid");
  BOOST_TEST(run.code == 0);
  BOOST_TEST(run.out.find("NVLink") != std::string::npos);
  BOOST_TEST(run.out.find("kernels: moe_fused") != std::string::npos);
}
