// Whole experts on every rank or slices of all, beside data-parallel attention or tensor parallelism.
#define BOOST_TEST_MODULE expert_split
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/cost/expert_load.hpp"
#include "sim/cost/memory.hpp"
#include "sim/cost/step_case.hpp"
#include "tests/support/figures.hpp"

using namespace rackcast;

namespace {

StepContext context(bool tensor_parallel, bool whole, const char* model = "deepseek-r1", const char* gpu = "b200") {
  const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});
  StepContext c;
  c.model = read_yaml_as<ModelSpec>(catalog.find("models", model), catalog.read_options());
  c.gpu = read_yaml_as<GpuSpec>(catalog.find("gpus", gpu), catalog.read_options());
  c.costs = read_costs(catalog, gpu);
  c.nvlink_domain = 8;
  c.ranks = 8;
  c.tensor_parallel = tensor_parallel;
  c.expert_parallel = whole;
  return c;
}

std::vector<RankBatch> batch(const StepContext& c, const std::string& text) {
  return std::vector<RankBatch>(static_cast<std::size_t>(c.tensor_parallel ? 1 : c.ranks), batch_of(parse_case(text), c.model, CasePhase::automatic));
}

OperatorCost part(const StepContext& c, const std::string& text, const std::string& name, const ExpertLoad& load = {}) {
  static std::vector<std::unique_ptr<StepModel>> kept;  // rows point into their model
  kept.push_back(make_step_model(c));
  for (const OperatorCost& op : kept.back()->operators(batch(c, text), load))
    if (op.title() == name) return op;
  return {};
}

constexpr const char* prompts_of_a_rank = "2*8K@8K";
constexpr const char* prompts_of_all = "16*8K@8K";

}  // namespace

BOOST_AUTO_TEST_CASE(slices_multiply_as_much_as_whole_experts_and_read_every_expert) {
  const OperatorCost whole = part(context(false, true), prompts_of_a_rank, "routed experts");
  const OperatorCost cut = part(context(false, false), prompts_of_a_rank, "routed experts");
  const OperatorCost whole_tp = part(context(true, true), prompts_of_all, "routed experts");
  const OperatorCost cut_tp = part(context(true, false), prompts_of_all, "routed experts");
  for (const OperatorCost* op : {&cut, &whole_tp, &cut_tp}) BOOST_TEST(op->flops == whole.flops, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(cut.time_s == cut_tp.time_s, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(whole.time_s == whole_tp.time_s, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(cut.bytes > whole.bytes);  // every rank writes and reads the rows of all
}

BOOST_AUTO_TEST_CASE(slices_under_data_parallel_attention_gather_all_tokens_and_reduce_them_back) {
  const StepContext c = context(false, false);
  const double layers = 58, tokens = 2 * 8192;
  const double bytes = tokens * 7 * c.model.hidden * 2;  // seven other ranks' rows in BF16
  for (const auto& [name, family] : {std::pair{"all-gather of tokens", "nccl_all_gather"}, std::pair{"reduce-scatter of tokens", "nccl_reduce_scatter"}}) {
    const auto value = [&, f = family](const char* parameter) { return c.costs.get(f, parameter).value; };
    const double fixed_s = (value("a0_us") + 8 * value("a1_us")) * 1e-6;
    const double moved_s = (bytes + std::sqrt(bytes * value("half_mb") * 1e6)) / (value("link_gbs") * 1e9);
    const OperatorCost op = part(c, prompts_of_a_rank, name);
    BOOST_TEST(op.time_s == layers * (fixed_s + moved_s), boost::test_tools::tolerance(1e-9));
    BOOST_TEST(op.bytes == layers * bytes, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(op.family == family);
  }
  BOOST_TEST(part(c, prompts_of_a_rank, "dispatch").time_s == 0);
  BOOST_TEST(part(context(true, true), prompts_of_all, "dispatch").time_s == 0);  // every rank of a TP engine has all tokens
  BOOST_TEST(part(context(true, true), prompts_of_all, "all-reduce of experts").time_s > 0);
}

BOOST_AUTO_TEST_CASE(uneven_routing_slows_the_busiest_rank_of_whole_experts_and_touches_fewer_experts_of_either) {
  ExpertPopularityOptions skewed;
  skewed.skew = ExpertSkew::zipf;
  skewed.exponent = 1.0;
  for (const bool tensor_parallel : {false, true})
    for (const bool whole : {false, true}) {
      const StepContext c = context(tensor_parallel, whole);
      TypicalExperts experts(c, EplbSpec{}, skewed, 8192, 42);
      const auto model = make_step_model(c);
      const auto prompts = batch(c, tensor_parallel ? prompts_of_all : prompts_of_a_rank);
      const double uneven_s = model->step(prompts, experts.load()).moe_s, even_s = model->step(prompts).moe_s;
      if (whole) BOOST_TEST(uneven_s > 1.2 * even_s);
      else BOOST_TEST(uneven_s == even_s, boost::test_tools::tolerance(1e-3));  // all experts are touched: slices are even
      double sum = 0;
      for (const OperatorCost& op : model->operators(prompts, experts.load())) sum += op.time_s;
      BOOST_TEST(sum == model->step(prompts, experts.load()).total_s, boost::test_tools::tolerance(1e-3));
      TypicalExperts of_few(c, EplbSpec{}, skewed, 1, 42);
      const auto answers = batch(c, tensor_parallel ? "64*1@8K" : "8*1@8K");
      if (!whole) BOOST_TEST(model->step(answers, of_few.load()).moe_s < 0.9 * model->step(answers).moe_s);
    }
}

BOOST_AUTO_TEST_CASE(redundant_experts_are_copies_of_whole_ones) {
  for (const bool tensor_parallel : {false, true}) {
    const char* const text = tensor_parallel ? "64*1@8K" : "8*1@8K";
    StepContext many = context(tensor_parallel, false);
    many.redundant_experts = 256;
    BOOST_TEST(part(many, text, "routed experts").bytes == part(context(tensor_parallel, false), text, "routed experts").bytes);
  }
}

BOOST_AUTO_TEST_CASE(one_rank_is_the_same_however_its_experts_are_divided) {
  for (const bool tensor_parallel : {false, true}) {
    StepContext whole = context(tensor_parallel, true, "deepseek-v4.1-flash", "gb300"), cut = context(tensor_parallel, false, "deepseek-v4.1-flash", "gb300");
    whole.ranks = cut.ranks = 1;
    const std::vector<RankBatch> one(1, batch(whole, "2*4K@4K").front());
    BOOST_TEST(make_step_model(whole)->step(one).total_s == make_step_model(cut)->step(one).total_s);
  }
}

BOOST_AUTO_TEST_CASE(one_collective_stands_for_the_other_where_a_cost_file_knows_one_only) {
  StepContext c = context(false, false);
  const double known_s = part(c, prompts_of_a_rank, "reduce-scatter of tokens").time_s;
  c.costs.families.erase("nccl_all_gather");
  const OperatorCost gather = part(c, prompts_of_a_rank, "all-gather of tokens");
  BOOST_TEST(gather.time_s == known_s);
  BOOST_TEST(static_cast<int>(gather.basis) >= static_cast<int>(Basis::transferred));
  c.costs.families.erase("nccl_reduce_scatter");
  BOOST_CHECK_EXCEPTION(make_step_model(c), UserError, [](const UserError& e) { return std::string(e.what()).find("experts: tensor_parallel with dep") != std::string::npos; });
  for (const char* gpu : {"h100", "h200", "b200", "b300", "gb200", "gb300"})
    BOOST_TEST(part(context(false, false, "deepseek-r1", gpu), prompts_of_a_rank, "all-gather of tokens").time_s > 0);
}

BOOST_AUTO_TEST_CASE(a_fused_exchange_needs_whole_experts_behind_data_parallel_attention) {
  BOOST_TEST(context(false, true, "deepseek-v4.1-flash", "gb300").fused_experts());
  BOOST_TEST(!context(false, false, "deepseek-v4.1-flash", "gb300").fused_experts());
  BOOST_TEST(!context(true, true, "deepseek-v4.1-flash", "gb300").fused_experts());
}

BOOST_AUTO_TEST_CASE(slices_beyond_one_nvlink_domain_are_refused_under_data_parallel_attention) {
  StepContext c = context(false, false);
  c.ranks = 16;
  c.nic_bandwidth = BytesPerSecond(50e9);
  BOOST_CHECK_THROW(make_step_model(c), UserError);
  c.expert_parallel = true;
  BOOST_TEST(make_step_model(c)->step(std::vector<RankBatch>(16, batch(context(false, true), "4*1@8K").front())).total_s > 0);
}

BOOST_AUTO_TEST_CASE(runs_with_either_split_serve_everything_and_hold_the_memory_that_it_takes) {
  const auto yaml = [](const char* engine, const char* more) {
    return std::string("name: split\nrack: hgx-b200\nmodel: deepseek-r1\nnetwork: fluid\ndeployment:\n  aggregated: {engines: 1, ") + engine +
           ", max_batched_tokens: 2K, max_requests_per_rank: 64}\nworkload: {kind: closed_loop, concurrency: 32, requests: 64, input: 2K, output: 64" + more + "}\n";
  };
  const auto figures = [&](const char* engine, const char* more = "") { return test::figures_of(yaml(engine, more), {}); };
  const test::Figures dep = figures("dep: 8"), dep_cut = figures("dep: 8, experts: tensor_parallel");
  const test::Figures tp = figures("tp: 8"), tp_whole = figures("tp: 8, experts: expert_parallel");
  for (const test::Figures* f : {&dep, &dep_cut, &tp, &tp_whole}) BOOST_TEST(f->at("requests_completed") == 64);
  const test::Figures skewed = figures("tp: 8, experts: expert_parallel", ", experts: {skew: zipf, exponent: 1}");
  const test::Figures skewed_cut = figures("tp: 8", ", experts: {skew: zipf, exponent: 1}");
  BOOST_TEST(skewed.at("tpot_mean_s") > tp_whole.at("tpot_mean_s"));
  BOOST_TEST(skewed_cut.at("tpot_mean_s") < tp.at("tpot_mean_s"));
  // 256 experts divide by 8 ranks: whole or cut, a GPU holds an eighth of them. Redundant copies are of whole ones.
  const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});
  const auto expert_bytes = [&](const char* engine, const char* eplb) {
    const Scenario s = read_scenario(YamlSource{"split", yaml(engine, "") + ""}, catalog, {eplb});
    return plan_memory(s.model, s.rack, *s.deployment.aggregated, EngineRole::aggregated, s.deployment).lines.front().bytes;
  };
  const char* const none = "deployment.eplb.redundant_experts=0";
  const double an_eighth = expert_bytes("dep: 8", none);
  for (const char* engine : {"dep: 8, experts: tensor_parallel", "tp: 8", "tp: 8, experts: expert_parallel"})
    BOOST_TEST(expert_bytes(engine, none) == an_eighth, boost::test_tools::tolerance(1e-12));
  const char* const eight = "deployment.eplb.redundant_experts=8";
  BOOST_TEST(expert_bytes("tp: 8, experts: expert_parallel", eight) == an_eighth * 33 / 32, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(expert_bytes("dep: 8, experts: tensor_parallel", eight) == an_eighth, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(flow_and_collapsed_agree_on_slices_with_even_and_with_idle_ranks) {
  for (const int users : {1, 16}) {
    const std::string yaml = "name: split\nrack: hgx-b200\nmodel: deepseek-r1-nvfp4\nnetwork: fluid\ndeployment:\n"
                             "  aggregated: {engines: 1, dep: 4, experts: tensor_parallel, max_batched_tokens: 8K, max_requests_per_rank: 16}\n"
                             "workload: {kind: closed_loop, concurrency: " + std::to_string(users) + ", requests: 32, input: 8K, output: 16}\n";
    const test::Figures collapsed = test::figures_of(yaml, {"fidelity=collapsed"}), flow = test::figures_of(yaml, {"fidelity=flow"});
    for (const char* metric : {"ttft_mean_s", "tpot_mean_s"}) BOOST_TEST(flow.at(metric) == collapsed.at(metric), boost::test_tools::tolerance(0.03));
  }
}

BOOST_AUTO_TEST_CASE(check_places_slices_that_leave_their_nvlink_domain_and_counts_gathered_tokens) {
  const auto yaml = [](int ranks) {
    return "name: split\nrack: {base: hgx-b200, gpus: 16}\nmodel: deepseek-r1\ndeployment:\n  aggregated: {engines: 1, dep: " + std::to_string(ranks) +
           ", experts: tensor_parallel, max_batched_tokens: 2K}\nworkload: {kind: closed_loop, concurrency: 4, input: 2K, output: 16}\n";
  };
  BOOST_CHECK_EXCEPTION(read_scenario(YamlSource{"split.yaml", yaml(16)}, test::shipped(), {}), UserError, [](const UserError& e) {
    return std::string(e.what()).find("split.yaml:5:3: deployment: aggregated: experts: tensor_parallel with dep") != std::string::npos;
  });
  const Scenario s = read_scenario(YamlSource{"split.yaml", yaml(8)}, test::shipped(), {});
  double gathered = 0;
  for (const MemoryLine& line : plan_memory(s.model, s.rack, *s.deployment.aggregated, EngineRole::aggregated, s.deployment).lines)
    if (line.what == "tokens of the other ranks") gathered = line.bytes;
  BOOST_TEST(gathered >= 7 * 2048 * 2.0 * s.model.hidden);
}
