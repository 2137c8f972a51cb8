#define BOOST_TEST_MODULE memory
#include "sim/cost/memory.hpp"

#include <boost/test/unit_test.hpp>

#include "sim/base/catalog.hpp"
#include "sim/base/error.hpp"

using namespace rackcast;

namespace {

const Catalog& catalog() {
  static const Catalog found({RACKCAST_SOURCE_DIR "/scenarios"});
  return found;
}
ModelSpec model(const std::string& name) {
  return read_yaml_as<ModelSpec>(catalog().find("models", name), catalog().read_options());
}
RackSpec rack(const std::string& name) {
  return read_yaml_as<RackSpec>(catalog().find("racks", name), catalog().read_options());
}
EngineSpec dep(int ranks) {
  EngineSpec e;
  e.engines = 1;
  e.dep = ranks;
  return e;
}
double line(const MemoryPlan& plan, const std::string& what) {
  for (const MemoryLine& l : plan.lines)
    if (l.what == what) return l.bytes;
  return 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(weights_of_v41_match_the_published_sums_by_width) {
  const ModelSpec v41 = model("deepseek-v4.1-flash");
  DeploymentSpec deployment;
  deployment.speculation.draft_tokens = 5;
  for (const auto& [ranks, routed_gb, draft_gb] : {std::tuple{4, 72.2, 2.52}, {8, 36.1, 1.62}, {16, 18.05, 1.16}, {32, 9.02, 0.94}}) {
    const MemoryPlan plan = plan_memory(v41, rack("gb300-nvl72"), dep(ranks), EngineRole::decode, deployment);
    BOOST_CHECK_CLOSE(line(plan, "routed experts") / 1e9, routed_gb, 0.2);
    BOOST_CHECK_CLOSE(line(plan, "draft model") / 1e9, draft_gb, 2.0);
    BOOST_CHECK_CLOSE((line(plan, "attention, shared experts and other dense weights") + line(plan, "embedding and head")) / 1e9, 9.85, 2.0);
  }
}

BOOST_AUTO_TEST_CASE(a_gb300_decode_rank_at_dep32_holds_two_thousand_requests_of_128k) {
  const MemoryPlan plan = plan_memory(model("deepseek-v4.1-flash"), rack("gb300-nvl72"), dep(32), EngineRole::decode, {});
  BOOST_CHECK(plan.fits);
  const double requests = plan.kv_pool_bytes / (plan.kv_fixed_bytes + 131072 * plan.kv_bytes_per_token);
  BOOST_CHECK_GT(requests, 1800);
  BOOST_CHECK_LT(requests, 2300);
}

BOOST_AUTO_TEST_CASE(engram_in_hbm_is_shared_by_the_engine_and_in_host_memory_costs_nothing_here) {
  DeploymentSpec deployment;
  deployment.engram = EngramPlacement::hbm;
  const ModelSpec v41 = model("deepseek-v4.1-flash");
  const MemoryPlan hbm = plan_memory(v41, rack("gb300-nvl72"), dep(8), EngineRole::decode, deployment);
  BOOST_CHECK_CLOSE(line(hbm, "Engram tables (hbm)"), 202758032400.0 / 8, 1e-9);
  deployment.engram = EngramPlacement::peer;
  const MemoryPlan peer = plan_memory(v41, rack("gb300-nvl72"), dep(8), EngineRole::decode, deployment);
  BOOST_CHECK_CLOSE(line(peer, "Engram tables (peer)"), 202758032400.0 / 72, 1e-9);
  deployment.engram = EngramPlacement::host;
  const MemoryPlan host = plan_memory(v41, rack("gb300-nvl72"), dep(8), EngineRole::decode, deployment);
  BOOST_CHECK_CLOSE(host.used_bytes, hbm.used_bytes - 202758032400.0 / 8, 1e-9);
}

BOOST_AUTO_TEST_CASE(an_engine_that_is_too_narrow_is_refused_with_the_sum) {
  const MemoryPlan plan = plan_memory(model("deepseek-v4-pro"), rack("gb200-nvl72"), dep(2), EngineRole::decode, {});
  BOOST_CHECK(!plan.fits);
  try {
    require_fit(plan, "decode engine of deepseek-v4-pro, DEP2 on gb200");
    BOOST_FAIL("must refuse");
  } catch (const UserError& error) {
    const std::string text = error.what();
    for (const char* part : {"does not fit", "routed experts", "runtime reserve", "sum", "memory of the GPU"})
      BOOST_CHECK_MESSAGE(text.find(part) != std::string::npos, part);
  }
}

BOOST_AUTO_TEST_CASE(a_context_that_no_pool_can_hold_is_refused) {
  const ModelSpec r1 = model("deepseek-r1");
  BOOST_CHECK(plan_memory(r1, rack("hgx-h200"), dep(8), EngineRole::decode, {}, 100000).fits);
  BOOST_CHECK(!plan_memory(r1, rack("hgx-h200"), dep(8), EngineRole::decode, {}, 1e7).fits);
}

BOOST_AUTO_TEST_CASE(experts_that_do_not_divide_are_padded_and_it_is_said) {
  const MemoryPlan plan = plan_memory(model("deepseek-v4.1-flash"), rack("gb300-nvl72"), dep(72), EngineRole::decode, {});
  BOOST_CHECK_EQUAL(plan.expert_slots_per_rank, 6);
  BOOST_REQUIRE(!plan.notes.empty());
  BOOST_CHECK_NE(plan.notes.front().find("48 redundant ones"), std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_gpu_without_fp4_keeps_experts_as_fp8) {
  const MemoryPlan plan = plan_memory(model("deepseek-v4-flash"), rack("hgx-h200"), dep(8), EngineRole::decode, {});
  BOOST_CHECK_CLOSE(line(plan, "routed experts"), 43.0 * 32 * 3 * 4096 * 2048, 1e-9);
}

BOOST_AUTO_TEST_CASE(tensor_parallel_keeps_a_latent_row_on_every_rank_but_cuts_weights) {
  EngineSpec tp8;
  tp8.engines = 1;
  tp8.tp = 8;
  const ModelSpec r1 = model("deepseek-r1");
  const MemoryPlan tp = plan_memory(r1, rack("hgx-h200"), tp8, EngineRole::aggregated, {});
  const MemoryPlan ep = plan_memory(r1, rack("hgx-h200"), dep(8), EngineRole::aggregated, {});
  BOOST_CHECK_EQUAL(tp.kv_bytes_per_token, ep.kv_bytes_per_token);
  BOOST_CHECK_LT(tp.used_bytes, ep.used_bytes);
}

BOOST_AUTO_TEST_CASE(a_share_of_the_gpu_leaves_the_pool_what_weights_and_activations_do_not_take_of_it) {
  DeploymentSpec deployment;
  deployment.kv_cache.gpu_share = 0.9;
  const MemoryPlan plan = plan_memory(model("deepseek-v4-pro"), rack("hgx-b200"), dep(8), EngineRole::aggregated, deployment);
  BOOST_CHECK_CLOSE(plan.kv_pool_bytes, 0.9 * plan.memory_bytes - plan.used_bytes, 1e-9);
  deployment.kv_cache.gpu_share = 0.5;  // less than the weights
  BOOST_CHECK_EQUAL(plan_memory(model("deepseek-v4-pro"), rack("hgx-b200"), dep(8), EngineRole::aggregated, deployment).kv_pool_bytes, 0);
}
