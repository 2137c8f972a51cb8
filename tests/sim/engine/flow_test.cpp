// Fidelity `flow`: by hand on small steps, then against collapsed runs on even and on uneven loads, of ranks with separate
// kernels (DeepSeek-R1 on H200) and with one fused kernel (V4.1-Flash on GB300).
#define BOOST_TEST_MODULE flow
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/engine/build.hpp"
#include "sim/engine/recorder.hpp"
#include "sim/engine/result.hpp"
#include "sim/policy/expert_demand.hpp"
#include "tests/support/small_rack.hpp"

using namespace rackcast;
using namespace rackcast::test;
namespace tt = boost::test_tools;

namespace {

const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});

// Given phases, whatever the batch.
struct GivenPhases final : StepModel {
  StepPhases given;
  double collapsed_s = 1;
  StepTime step(std::span<const RankBatch>, const ExpertLoad&) const override { return {.total_s = collapsed_s, .moe_s = collapsed_s}; }
  StepPhases phases(std::span<const RankBatch>, const ExpertLoad&) const override { return given; }
  std::vector<OperatorCost> operators(std::span<const RankBatch>, const ExpertLoad&) const override { return {}; }
};

// Two ranks; a row is 1,000 bytes out and 2,000 back, half of all rows go to each rank, ports of 1 MB/s of which
// the exchange reaches half.
ExpertPhases two_ranks(double rows_of_0, double rows_of_1) {
  ExpertPhases e;
  e.rows = {rows_of_0, rows_of_1};
  e.share = {0.5, 0.5};
  e.before_s = {0.010, 0.020};
  e.experts_s = {0.300, 0.100};
  e.dispatch = {1000, 0.5e6, 0.5e6};
  e.combine = {2000, 0.5e6, 0.5e6};
  return e;
}

// How long one iteration of an engine of two ranks takes.
double iteration_s(ExpertPhases experts, int layers) {
  experts.layers = layers;
  GivenPhases model;
  model.given = {.layers_s = {0, 0}, .experts = {experts}, .rest_s = 0.5};
  SimulationOptions options;
  options.pools = {pool(EngineRole::aggregated, 1, 2, model)};
  options.pools.front().shape.flows = true;
  options.topology = {.gpus_per_rack = 2, .nvlink_bytes_per_s = 1e6};
  options.acceptance = Acceptance(0, 1, {});
  options.duration_s = never_s;
  Scripted load({{0.0, 10, 1}});
  const Run run = simulate(options, load);
  BOOST_TEST(run.outcome.iterations == 1U);
  BOOST_TEST(run.outcome.engine_total.front().busy_s == run.records.rows.front().finish_s, tt::tolerance(1e-12));
  return run.records.rows.front().finish_s;
}

struct Outcome {
  Metrics metrics;
  double correction = 1;  // by the derived sums of maxima
  std::uint64_t messages = 0;
};

Outcome outcome_of(const std::string& fidelity, const std::string& what, const ExpertLoad& experts) {
  BuiltRun built = build_run(read_scenario(YamlSource{"flow", "name: flow\nnetwork: fluid\nfidelity: " + fidelity + "\n" + what}, catalog, {}), catalog);
  for (PoolOptions& pool : built.options.pools) pool.expert_load = experts;
  Recorder recorder({}, {});
  const auto network = make_fluid_network();
  const SimulationOutcome run = Simulation(built.options, *built.load, *network, recorder).run();
  Outcome outcome;
  built.context.sim_seconds = run.end_s;
  outcome.metrics = metrics_of(recorder.statistics, built.context);
  outcome.messages = run.exchange_flows;
  double expected = 0, collapsed = 0;
  for (const EngineTotals& engine : run.engine_total) {
    expected += engine.layered_expected_s;
    collapsed += engine.layered_collapsed_s;
  }
  if (collapsed > 0) outcome.correction = expected / collapsed;
  return outcome;
}

// In throughput and in the slow tail of inter-token times, after the correction for sums of maxima.
void agree(const std::string& what, const ExpertLoad& experts) {
  const Outcome collapsed = outcome_of("collapsed", what, experts), flow = outcome_of("flow", what, experts);
  BOOST_TEST(flow.messages > 100000U);
  BOOST_TEST(flow.correction > 1.0);
  BOOST_TEST_CONTEXT("correction " << flow.correction) {
    for (const auto& [name, factor] : {std::pair{"tpot_p90_s", flow.correction}, {"total_tok_s_gpu", 1 / flow.correction}}) {
      const double wanted = metric(collapsed.metrics, name) * factor, got = metric(flow.metrics, name);
      BOOST_TEST_MESSAGE(name << ": collapsed, corrected " << wanted << ", flow " << got << " (" << 100 * (got / wanted - 1) << "%)");
      BOOST_TEST(got == wanted, tt::tolerance(0.03));
    }
  }
}

// Two simulated seconds and some more at DEP8: 64 users whose lengths are alike, or spread over a factor of five.
std::string separate_kernels(const char* range_ratio) {
  return std::string("rack: {base: hgx-h200, gpus: 8}\nmodel: deepseek-r1\n"
                     "deployment: {aggregated: {engines: 1, dep: 8, max_batched_tokens: 2K}, kv_cache: {host_tier: 0 GiB per node}}\n"
                     "workload: {kind: closed_loop, concurrency: 64, input: 1K, output: 24, requests: 192, range_ratio: ") + range_ratio + "}\n";
}
std::string fused_kernel(const char* range_ratio) {
  return std::string("rack: gb300-nvl72\nmodel: deepseek-v4.1-flash\n"
                     "deployment: {aggregated: {engines: 1, dep: 8, max_batched_tokens: 2K}, kv_cache: {host_tier: 0 GiB per node},"
                     " speculation: {draft_tokens: 5, acceptance_length: 3.51}}\n"
                     "workload: {kind: closed_loop, concurrency: 64, input: 8K, output: 96, requests: 192, range_ratio: ") + range_ratio + "}\n";
}

struct OneBusyRank final : DemandSource {
  StepDemand demand;
  OneBusyRank() { demand.add_layer(std::vector<ExpertDemand>{{1.8, 1.0, 1.5}}); }
  const StepDemand& at(double) override { return demand; }
} busy;
const ExpertLoad skewed{.main = &busy, .draft = &busy};

}  // namespace

BOOST_AUTO_TEST_CASE(a_layer_is_the_slowest_ranks_way_to_the_exchange_and_the_slowest_experts_after_it) {
  // Rank 0 sends after 10 ms, 100 rows * 1,000 B / 2 at 0.5 MB/s: rank 1 has them at 110 ms and returns its results, twice
  // the bytes, at 110 + 100 + 200 ms. Rank 1 sends after 20 ms: rank 0 has them at 120 and returns results at 620 ms.
  BOOST_TEST(iteration_s(two_ranks(100, 100), 1) == 0.620 + 0.5, tt::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(messages_of_two_layers_share_a_port) {
  // As before; rank 0 goes on at 410 ms and sends again at 420, when it also starts to return its results: both at half
  // speed until 620. So rank 1 goes on at 720 ms (not 620), sends at 740, and rank 0 has its rows at 840, computes until
  // 1,140 and has returned them at 1,340 ms.
  BOOST_TEST(iteration_s(two_ranks(100, 100), 2) == 1.340 + 0.5, tt::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(a_rank_without_rows_sends_flags_and_is_waited_for_all_the_same) {
  // Only rank 0 sends, 50 rows to rank 1. Rank 1 starts its experts when they are there, at 110 ms, and has returned them at
  // 410 ms. Rank 0 waits for rank 1 to reach the exchange (20 ms), computes, and is done long before.
  BOOST_TEST(iteration_s(two_ranks(100, 0), 2) == 0.410 + 0.410 + 0.5, tt::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(a_fused_kernel_starts_when_all_ranks_are_there_and_overlaps_its_messages) {
  ExpertPhases e = two_ranks(100, 100);
  e.fused = true;
  e.gain = 1.1;
  e.launch_s = 0.005;
  e.overlap = 2;
  e.reduce_s = {0.001, 0.002};
  const double links_s = 0.1 + 0.2;  // out and back
  const double kernel_s = 1.1 * (0.005 + std::sqrt(0.3 * 0.3 + links_s * links_s) + 0.001);  // of rank 0, the slower one
  // Rank 1 ends its first kernel so much earlier that its longer way to the second one does not count.
  BOOST_TEST(iteration_s(e, 2) == 0.020 + kernel_s + 0.010 + kernel_s + 0.5, tt::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(phases_add_up_to_the_collapsed_step_when_ranks_are_alike) {
  for (const std::string& what : {separate_kernels("1"), fused_kernel("1")}) {
    const BuiltRun built = build_run(read_scenario(YamlSource{"flow", "name: flow\n" + what}, catalog, {}), catalog);
    RankBatch rank;
    rank.decode_requests = rank.draft_requests = 20;
    rank.decode_tokens = 20 * built.options.acceptance.query_tokens();
    rank.decode_context = 20 * 8192.0;
    rank.decode_query_context = built.options.acceptance.query_tokens() * rank.decode_context;
    const std::vector<RankBatch> batch(8, rank);
    const StepModel& model = *built.pools.front().model;
    for (const ExpertLoad& load : {ExpertLoad{}, skewed}) {
      const StepPhases p = model.phases(batch, load);
      double sum = p.rest_s + p.layers_s.front();
      for (const ExpertPhases& e : p.experts) {
        // Out of one port, or into the busiest one: the exchange's slower end.
        const double most = std::max(e.rows[0] * (1 - e.share[7]), 7 * e.rows[7] * e.share[0]);
        const double out_s = most * e.dispatch.row_bytes / e.dispatch.link_bytes_per_s, back_s = most * e.combine.row_bytes / e.combine.link_bytes_per_s;
        sum += e.layers * (e.before_s[0] + (e.fused ? e.fused_s(0, out_s + back_s) : out_s + e.experts_s[0] + back_s));
      }
      BOOST_TEST(sum == model.step(batch, load).total_s, tt::tolerance(0.02));
    }
  }
}

BOOST_AUTO_TEST_CASE(runs_agree_with_collapsed_ones_when_ranks_and_experts_are_even) {
  agree(separate_kernels("1"), {});
  agree(fused_kernel("1"), {});
}

BOOST_AUTO_TEST_CASE(runs_agree_with_collapsed_ones_when_lengths_differ_between_ranks) {
  agree(separate_kernels("0.2"), {});
  agree(fused_kernel("0.2"), {});
}

BOOST_AUTO_TEST_CASE(runs_agree_with_collapsed_ones_when_experts_are_skewed) {
  agree(separate_kernels("1"), skewed);
  agree(fused_kernel("0.2"), skewed);
}

BOOST_AUTO_TEST_CASE(the_same_run_gives_the_same_result) {
  const Outcome a = outcome_of("flow", fused_kernel("0.2"), skewed), b = outcome_of("flow", fused_kernel("0.2"), skewed);
  BOOST_TEST(a.metrics.size() == b.metrics.size());
  for (const auto& [name, value] : a.metrics) BOOST_TEST((std::isnan(value) || metric(b.metrics, name) == value));
}
