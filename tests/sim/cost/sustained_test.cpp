#define BOOST_TEST_MODULE sustained
#include "sim/cost/sustained.hpp"

#include <boost/test/unit_test.hpp>

using namespace rackcast;
namespace tt = boost::test_tools;

namespace {

// A model whose every step takes as long as it is told.
class Fixed final : public StepModel {
 public:
  explicit Fixed(double total_s) : total_s_(total_s) {}
  StepTime step(std::span<const RankBatch>, const ExpertLoad&) const override {
    StepTime t;
    t.total_s = total_s_;
    return t;
  }
  std::vector<OperatorCost> operators(std::span<const RankBatch>, const ExpertLoad&) const override { return {}; }

 private:
  double total_s_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_iteration_with_a_prompt_on_any_rank_runs_at_the_sustained_clock) {
  const auto model = make_two_clock_model(std::make_unique<Fixed>(1), std::make_unique<Fixed>(2));
  std::vector<RankBatch> ranks(4);
  ranks[1].decode_tokens = ranks[1].decode_requests = 64;
  BOOST_TEST(model->step(ranks).total_s == 1);
  ranks[3].prefill_tokens = 1;
  BOOST_TEST(model->step(ranks).total_s == 2);
}

BOOST_AUTO_TEST_CASE(only_tensor_core_rates_are_slowed_and_rest_on_the_weaker_basis) {
  CostSpec costs;
  costs.families["clock"].parameters["sustained_share"] = {0.8, 0.7, 1, Basis::transferred, "x"};
  costs.families["clock"].parameters["sustained_from"] = {0.45, 0.4, 0.5, Basis::assumed, "x"};
  costs.families["moe_nvfp4"].parameters["mma_tflops"] = {1000, 900, 1100, Basis::published, "x"};
  costs.families["dense_fp8"].parameters["mma_tflops"] = {1000, 900, 1100, Basis::published, "x"};
  costs.families["dense_fp8"].parameters["hbm_gbs"] = {4000, 3900, 4100, Basis::published, "x"};
  costs.models["m"].families["moe_fused"].parameters["mma_tflops"] = {2000, 1900, 2100, Basis::assumed, "x"};
  GpuSpec gpu;
  gpu.bf16 = FlopsPerSecond(900e12);
  gpu.fp8 = FlopsPerSecond(1800e12);
  gpu.fp4 = FlopsPerSecond(3600e12);
  const CostSpec slow = sustained_costs(costs, gpu);
  BOOST_TEST(slow.get("moe_nvfp4", "mma_tflops", "").value == 1000);  // 28% of the peak leaves the power cap alone
  BOOST_TEST(slow.get("dense_fp8", "mma_tflops", "").value == 800, tt::tolerance(1e-12));
  BOOST_TEST((slow.get("dense_fp8", "mma_tflops", "").basis == Basis::transferred));
  BOOST_TEST(slow.get("dense_fp8", "hbm_gbs", "").value == 4000);
  BOOST_TEST(slow.get("moe_fused", "mma_tflops", "m").value == 1600, tt::tolerance(1e-12));
  BOOST_TEST((slow.get("moe_fused", "mma_tflops", "m").basis == Basis::assumed));
}

BOOST_AUTO_TEST_CASE(attention_and_index_lose_their_own_share_where_it_was_measured) {
  CostSpec costs;
  costs.families["clock"].parameters["sustained_share"] = {0.8, 0.7, 1, Basis::measured, "x"};
  costs.families["clock"].parameters["sustained_from"] = {0.4, 0.3, 0.5, Basis::measured, "x"};
  costs.families["clock"].parameters["attention_share"] = {0.9, 0.9, 0.9, Basis::measured, "x"};
  for (const char* family : {"attention_mla_prefill", "dense_bf16", "indexer"}) costs.families[family].parameters["mma_tflops"] = {1000, 900, 1100, Basis::published, "x"};
  GpuSpec gpu;
  gpu.bf16 = gpu.fp8 = FlopsPerSecond(1800e12);
  const CostSpec slow = sustained_costs(costs, gpu);
  BOOST_TEST(slow.get("attention_mla_prefill", "mma_tflops").value == 900, tt::tolerance(1e-12));
  BOOST_TEST(slow.get("dense_bf16", "mma_tflops").value == 800, tt::tolerance(1e-12));
  BOOST_TEST(slow.get("indexer", "mma_tflops").value == 800, tt::tolerance(1e-12));
}
