// The closed form against its own operator list, and against what physics demands of it.
#define BOOST_TEST_MODULE step_model
#include "sim/cost/step_model.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/cost/step_case.hpp"
#include "sim/policy/expert_demand.hpp"

using namespace rackcast;

namespace {

StepContext context(const std::string& model, const std::string& gpu, int ranks, bool tensor_parallel = false) {
  const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});
  StepContext c;
  c.model = read_yaml_as<ModelSpec>(catalog.find("models", model), catalog.read_options());
  c.costs = read_costs(catalog, gpu);
  c.gpu.name = gpu;
  c.gpu.fp4 = FlopsPerSecond(gpu[0] == 'h' ? 0 : 1e16);
  c.nvlink_domain = gpu[0] == 'g' ? 72 : 8;
  c.nic_bandwidth = BytesPerSecond(50e9);
  c.ranks = ranks;
  c.tensor_parallel = tensor_parallel;
  return c;
}

std::vector<RankBatch> batch(const StepContext& c, const std::string& text) {
  const RankBatch one = batch_of(parse_case(text), c.model, CasePhase::automatic);
  return std::vector<RankBatch>(static_cast<std::size_t>(c.tensor_parallel ? 1 : c.ranks), one);
}

double total(const StepContext& c, const std::string& text) { return make_step_model(c)->step(batch(c, text)).total_s; }

double main_s(const StepTime& t) { return t.total_s - t.draft_s - t.host_s; }

}  // namespace

BOOST_AUTO_TEST_CASE(operators_sum_to_the_step_for_every_model_gpu_and_kind_of_engine) {
  for (const char* model : {"deepseek-v4.1-flash", "deepseek-v4-flash", "deepseek-v4-pro", "deepseek-r1", "kimi-k2.5"})
    for (const char* gpu : {"h100", "h200", "b200", "b300", "gb200", "gb300"})
      for (const bool tensor_parallel : {false, true})
        for (const char* text : {"16*1@8K", "7*4@100K", "1*8K@9K", "3*2@40K,2*2K@3K", "33*1@1000"}) {
          StepContext c = context(model, gpu, 8, tensor_parallel);
          c.draft_tokens = c.model.draft ? c.model.draft->max_tokens : 0;
          std::vector<RankBatch> ranks = batch(c, text);
          ranks.front().draft_requests = ranks.front().decode_requests;
          if (!tensor_parallel) add_decode(ranks[3], 5, 1, 300000, true);  // one rank is busier
          const auto step_model = make_step_model(c);
          const double stepped = step_model->step(ranks).total_s;
          double sum = 0;
          for (const OperatorCost& op : step_model->operators(ranks)) sum += op.time_s;
          BOOST_REQUIRE_CLOSE(sum, stepped, 1e-9);
          BOOST_REQUIRE(stepped > 0 && std::isfinite(stepped));
        }
}

BOOST_AUTO_TEST_CASE(draft_layers_of_tensor_parallel_engines_add_up_over_the_ranks_as_main_layers_do) {
  StepContext c = context("deepseek-v4.1-flash", "b300", 4, true);
  c.draft_tokens = 5;
  std::vector<RankBatch> ranks = batch(c, "1*6@64K");
  ranks.front().draft_requests = 1;
  const auto model = make_step_model(c);
  double main_s = 0, draft_s = 0;
  int main_layers = 0, draft_layers = 0;
  for (const OperatorCost& op : model->operators(ranks)) {
    if (op.title() == "all-reduce") main_s += op.time_s, main_layers += op.layer_count;
    if (op.title() == "draft all-reduce") draft_s += op.time_s, draft_layers += op.layer_count;
  }
  BOOST_TEST(draft_layers == 2 * c.model.draft->stages);
  BOOST_TEST(draft_s / draft_layers == main_s / main_layers, boost::test_tools::tolerance(0.05));  // five rows and six
}

BOOST_AUTO_TEST_CASE(the_published_steps_of_v41_are_met) {
  const StepContext gb300 = context("deepseek-v4.1-flash", "gb300", 32);
  const auto model = make_step_model(gb300);
  const double at_64k = main_s(model->step(batch(gb300, "16*6@64K")));
  const double at_855k = main_s(model->step(batch(gb300, "16*6@855K")));
  BOOST_CHECK_CLOSE(at_64k, 8.86e-3, 2.0);
  BOOST_CHECK_CLOSE(main_s(model->step(batch(gb300, "16*6@256K"))), 9.03e-3, 2.0);
  BOOST_CHECK_CLOSE(at_855k, 9.53e-3, 2.0);
  BOOST_CHECK_CLOSE(at_855k - at_64k, 0.67e-3, 15.0);
  const StepContext gb200 = context("deepseek-v4.1-flash", "gb200", 4);
  const StepTime t = make_step_model(gb200)->step(batch(gb200, "64*6@128K"));
  BOOST_CHECK_CLOSE(t.moe_s, 13.4e-3, 3.0);
  BOOST_CHECK_CLOSE(main_s(t) - t.moe_s, 10e-3, 20.0);
}

BOOST_AUTO_TEST_CASE(more_work_never_takes_less_time) {
  for (const char* name : {"deepseek-v4.1-flash", "deepseek-r1"}) {
    const StepContext c = context(name, "gb300", 16);
    double last = 0;
    for (const char* text : {"1*1@1K", "2*1@1K", "8*1@1K", "64*1@1K", "256*1@1K"}) {
      const double now = total(c, text);
      BOOST_CHECK_GT(now, last);
      last = now;
    }
    BOOST_CHECK_GT(total(c, "16*1@128K"), total(c, "16*1@16K"));
    BOOST_CHECK_GT(total(c, "1*8K@64K"), total(c, "1*8K@8K"));
    BOOST_CHECK_GT(total(c, "1*8K@8K"), total(c, "1*4K@4K"));
  }
}

BOOST_AUTO_TEST_CASE(the_slowest_rank_sets_the_pace_and_an_idle_one_does_not_change_it) {
  const StepContext c = context("deepseek-v4.1-flash", "gb300", 4);
  const auto model = make_step_model(c);
  std::vector<RankBatch> ranks = batch(c, "16*6@64K");
  const double even = model->step(ranks).attention_s;
  ranks[2] = RankBatch{};
  BOOST_CHECK_EQUAL(model->step(ranks).attention_s, even);
  add_decode(ranks[1], 16, 6, 65536, false);
  BOOST_CHECK_GT(model->step(ranks).attention_s, even);
}

BOOST_AUTO_TEST_CASE(wider_expert_parallelism_reads_fewer_weights_a_rank) {
  double last = 1;
  for (const int ranks : {4, 8, 16, 32}) {
    const StepContext c = context("deepseek-v4.1-flash", "gb300", ranks);
    const double moe = make_step_model(c)->step(batch(c, "16*6@64K")).moe_s;
    BOOST_CHECK_LT(moe, last);
    last = moe;
  }
}

BOOST_AUTO_TEST_CASE(skewed_experts_cost_rows_and_save_weights) {
  const StepContext c = context("deepseek-v4.1-flash", "gb300", 32);
  const auto model = make_step_model(c);
  const auto few = batch(c, "4*1@8K"), many = batch(c, "1*8K@8K");
  struct OneRank final : DemandSource {
    StepDemand demand;
    const StepDemand& at(double) override { return demand; }
  } source;
  source.demand.add_layer(std::vector<ExpertDemand>{{3, 0.7, 3}});
  const ExpertLoad skewed{.main = &source};
  BOOST_CHECK_LT(model->step(few, skewed).moe_s, model->step(few).moe_s);
  BOOST_CHECK_GT(model->step(many, skewed).moe_s, 1.5 * model->step(many).moe_s);
}

BOOST_AUTO_TEST_CASE(a_prefill_of_v41_runs_its_decoder_on_the_last_rows_only) {
  const StepContext c = context("deepseek-v4.1-flash", "gb300", 4);
  StepContext whole = c;
  for (LayerGroup& g : whole.model.layers) g.prefill_rows = PrefillRows::all;
  const double split_s = total(c, "1*16K@16K"), whole_s = total(whole, "1*16K@16K");
  BOOST_CHECK_GT(whole_s, 1.8 * split_s);
  BOOST_CHECK_CLOSE(total(c, "16*1@16K"), total(whole, "16*1@16K"), 1e-9);
}

BOOST_AUTO_TEST_CASE(host_time_is_hidden_when_asynchronous_and_added_when_synchronous) {
  StepContext c = context("deepseek-v4.1-flash", "gb300", 32);
  c.host = {HostMode::sync, Seconds(2e-3), Seconds(1e-6), Seconds(0), Seconds(0), Seconds(0)};
  const auto ranks = batch(c, "16*6@64K");
  const StepTime sync = make_step_model(c)->step(ranks);
  BOOST_CHECK_CLOSE(sync.host_s, 2e-3 + 16e-6, 1e-9);
  c.host.mode = HostMode::async;
  BOOST_CHECK_EQUAL(make_step_model(c)->step(ranks).host_s, 0);
  c.host.per_step = Seconds(20e-3);
  const StepTime exposed = make_step_model(c)->step(ranks);
  BOOST_CHECK_CLOSE(exposed.total_s, 20e-3 + 16e-6, 1e-9);
}

BOOST_AUTO_TEST_CASE(an_engine_over_two_nvlink_domains_pays_for_its_nics) {
  StepContext c = context("deepseek-r1", "h200", 16);
  const double across = total(c, "32*1@8K");
  c.nvlink_domain = 16;
  BOOST_CHECK_GT(across, total(c, "32*1@8K"));
  c.nvlink_domain = 8;
  c.nic_bandwidth = BytesPerSecond{};
  BOOST_CHECK_THROW(make_step_model(c), UserError);
}

BOOST_AUTO_TEST_CASE(shares_by_basis_sum_to_one) {
  const StepContext c = context("deepseek-v4.1-flash", "b300", 8);
  BasisShare share;
  share.add(make_step_model(c)->operators(batch(c, "16*6@64K")), 1);
  BOOST_CHECK_CLOSE(share.measured + share.published + share.transferred + share.assumed, 1.0, 1e-9);
  BOOST_CHECK_GT(share.transferred, 0.5);
}

BOOST_AUTO_TEST_CASE(layers_that_select_cost_more_with_the_context_that_their_decode_requests_hold) {
  StepContext with = context("deepseek-v4-flash", "gb300", 4);
  StepContext without = with;
  CostFamily& family = without.costs.models.at("deepseek-v4-flash").families.at("composite_selected");
  const double a2_us = family.parameters.at("a2_us").value;
  BOOST_REQUIRE_GT(a2_us, 1);
  family.parameters.erase("a2_us");
  double selecting = 0;
  for (const LayerGroup& g : with.model.layers) selecting += g.attends == Attends::selected ? g.count : 0;
  BOOST_REQUIRE_GT(selecting, 0);
  const auto more_us = [&](const char* text) { return (total(with, text) - total(without, text)) * 1e6; };
  BOOST_CHECK_CLOSE(more_us("16*1@64K"), selecting * a2_us * 16 * 65536e-6, 0.01);
  BOOST_CHECK_CLOSE(more_us("32*1@64K"), 2 * more_us("16*1@64K"), 0.01);
  BOOST_CHECK_CLOSE(more_us("16*4@64K"), more_us("16*1@64K"), 0.01);  // the requests', not the queries'
  BOOST_CHECK_SMALL(more_us("8192@64Kc"), 1e-6);                       // prompts have none
}

BOOST_AUTO_TEST_CASE(fused_kernels_speed_up_steps_of_few_tokens_and_leave_others_alone) {
  StepContext c = context("deepseek-v4.1-flash", "b300", 4);
  c.tensor_parallel = true;
  StepContext fused = c;
  fused.path = EnginePath::low_latency;
  const auto total_of = [](const StepContext& s, const char* text) { return make_step_model(s)->step(batch(s, text)).total_s; };
  BOOST_CHECK_LT(total_of(fused, "1*6@128K"), 0.7 * total_of(c, "1*6@128K"));
  BOOST_CHECK_EQUAL(total_of(fused, "16*6@128K"), total_of(c, "16*6@128K"));
}

BOOST_AUTO_TEST_CASE(operators_of_the_fused_path_add_up_to_its_step) {
  StepContext c = context("deepseek-v4.1-flash", "b300", 4);
  c.tensor_parallel = true;
  c.path = EnginePath::low_latency;
  c.draft_tokens = 5;
  const auto model = make_step_model(c);
  const auto ranks = batch(c, "1*6@128K:5");
  double sum = 0;
  for (const OperatorCost& op : model->operators(ranks)) sum += op.time_s;
  BOOST_CHECK_CLOSE(sum, model->step(ranks).total_s, 1e-9);
}

BOOST_AUTO_TEST_CASE(lost_nvlink_planes_slow_the_exchange) {
  StepContext c = context("deepseek-v4.1-flash", "gb300", 32);
  StepContext half = c;
  half.link_share = 0.5;
  BOOST_CHECK_GT(total(half, "1*8K@8K"), total(c, "1*8K@8K"));
}

BOOST_AUTO_TEST_CASE(ranks_padded_to_the_largest_pay_for_its_experts_and_a_larger_iteration_is_not_padded) {
  StepContext c = context("deepseek-v4-pro", "b200", 8);
  std::vector<RankBatch> ranks = batch(c, "64*1@8K");
  ranks[2] = batch(c, "1*2K@8K").front();
  const StepTime free = make_step_model(c)->step(ranks);
  c.host.padded_tokens.count = 2048;
  const auto padding = make_step_model(c);
  const StepTime padded = padding->step(ranks), whole = padding->step(batch(c, "1*2K@8K"));
  BOOST_CHECK_GT(padded.moe_s, 1.2 * free.moe_s);
  BOOST_CHECK_CLOSE(padded.moe_s, whole.moe_s, 1e-6);
  BOOST_CHECK_EQUAL(padded.attention_s, free.attention_s);
  c.host.padded_tokens.count = 2047;
  BOOST_CHECK_EQUAL(make_step_model(c)->step(ranks).moe_s, free.moe_s);
}
