// What users of other predictors ran into, as situations: each case names the report. tests/README.md says where the rest
// of them is covered, or why they cannot arise here.
#define BOOST_TEST_MODULE known_traps
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "sim/base/error.hpp"
#include "tests/support/figures.hpp"
#include "tests/support/isolated.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_scenario.hpp"
#include "tests/support/small_rack.hpp"

using namespace rackcast;
using test::Figures;
using test::figures_of;
namespace tt = boost::test_tools;

namespace {

const std::string head = "name: test\nnetwork: fluid\nprices: {list: deepseek-2026-09}\n";
const std::string split = head + "rack: gb300-nvl72\nmodel: deepseek-v4-flash\ndeployment:\n  prefill: {engines: 1, dep: 4}\n  decode: {engines: 1, dep: 8}\n";

std::string closed(int users, int input, int output, int requests) {
  return fmt::format("workload: {{kind: closed_loop, concurrency: {}, input: {}, output: {}, requests: {}}}\n", users, input, output, requests);
}

}  // namespace

// aiconfigurator #1510: measured TTFT over the formula's was 2.8 to 14.4, by concurrency.
BOOST_AUTO_TEST_CASE(ttft_of_a_closed_loop_is_no_constant_times_the_unloaded_one) {
  const double alone = figures_of(split + closed(1, 8192, 256, 20))["ttft_mean_s"];
  double last = alone;
  for (const int users : {16, 64, 256}) {
    const double now = figures_of(split + closed(users, 8192, 256, 4 * users))["ttft_mean_s"];
    BOOST_TEST(now > 1.2 * last);
    last = now;
  }
  BOOST_TEST(last > 5 * alone);
}

// aiconfigurator #1522: the support check said ready, then every estimate failed.
BOOST_AUTO_TEST_CASE(check_accepts_just_what_runs) {
  const support::TemporaryFolder folder;
  int accepted = 0, refused = 0;
  for (std::uint64_t seed = 5000; seed < 5040; ++seed) {
    const std::string file = folder.file("s.yaml", test::ScenarioDraw(seed).yaml());
    const support::Outcome check = support::rackcast("check " + file), run = support::rackcast("run " + file + " --set workload.duration='1 s'");
    BOOST_TEST_CONTEXT(support::content_of(file) << check.err << run.err) BOOST_TEST((check.code == 0) == (run.code == 0));
    ++(check.code == 0 ? accepted : refused);
  }
  for (const char* set : {"deployment.aggregated.cost=nowhere", "workload.trace=/nowhere.jsonl", "deployment.aggregated.engines=3", "fidelity=flow",
                          "deployment.eplb={policy: static, static: {table: /nowhere.csv}}", "workload.experts={skew: counts, counts: /nowhere.csv}"}) {
    const std::string file = folder.file("t.yaml", head + "rack: {base: hgx-b200, racks: 2}\nmodel: deepseek-v4-flash\ndeployment: {aggregated: {engines: 2, dep: 6}}\n"
                                                          "workload: {kind: agentx, concurrency: 2, duration: 1 s, experts: {skew: zipf}}\nfailures: {events: [{kind: engine, pool: aggregated, at: 9 s}]}\n");
    BOOST_TEST_CONTEXT(set) {
      const support::Outcome run = support::rackcast(fmt::format("run {} --set '{}'", file, set)), check = support::rackcast(fmt::format("check {} --set '{}'", file, set));
      BOOST_TEST(run.code == 2);
      BOOST_TEST(check.code == 2);
    }
  }
  BOOST_TEST(accepted > 5);
  BOOST_TEST(refused > 5);
}

// configiq #8: TPOT meant different things in two tools.
BOOST_AUTO_TEST_CASE(every_figure_has_a_unit_and_a_definition) {
  for (const MetricDefinition& d : metric_definitions()) {
    BOOST_TEST(!d.definition.empty());
    BOOST_TEST_CONTEXT(d.name) BOOST_TEST((!d.unit.empty() || !(d.name.ends_with("_s") || d.name.find("tok_s") != std::string_view::npos || d.name.find("usd") != std::string_view::npos)));
  }
  // (tokens - 1) steps lie between the first token and the last.
  const Figures one = figures_of(split + closed(1, 1024, 101, 10));
  BOOST_TEST(one.at("e2e_mean_s") == one.at("ttft_mean_s") + 100 * one.at("tpot_mean_s"), tt::tolerance(1e-6));
}

// dynamo #8571, LLMServingSim #59, inference-sim #480: configurations that run out of memory, capacity a fifth too large.
BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_with_the_sum_and_what_fits_is_counted_in_bytes) {
  const std::string r1 = head + "rack: hgx-h100\nmodel: deepseek-r1\n" + closed(4, 1024, 16, 8);
  try {
    figures_of(r1 + "deployment: {aggregated: {engines: 1, tp: 4}}\n");
    BOOST_ERROR("671 GB of weights went into four H100");
  } catch (const UserError& error) {
    for (const char* line : {"routed experts", "KV", "GB"}) BOOST_TEST(std::string(error.what()).find(line) != std::string::npos);
  }
  const auto memory = test::result_of(head + "rack: hgx-h200\nmodel: deepseek-r1\ndeployment: {aggregated: {engines: 1, dep: 8}}\n" + closed(4, 1024, 16, 8))["breakdown"]["memory"];
  for (const auto& pool : memory) {
    double sum = 0;
    for (const auto& line : pool["lines"]) sum += line["bytes"].get<double>();
    BOOST_TEST(sum <= 141e9);
  }
}

// inference-sim #480: below the knee TTFT settles, above it TTFT grows with the length of the run.
BOOST_AUTO_TEST_CASE(above_the_capacity_ttft_grows_with_the_run_and_below_it_does_not) {
  const std::string open = split + "workload: {kind: open_loop, arrivals: poisson, input: 8192, output: 16, ";
  const Figures full = figures_of(split + closed(256, 8192, 16, 3000));
  const double capacity = full.at("requests_completed") / full.at("sim_seconds");
  const auto ttft = [&](double load, int requests) {
    return figures_of(open + fmt::format("rate: {} /s, requests: {}}}\n", load * capacity, requests))["ttft_mean_s"];
  };
  BOOST_TEST(ttft(0.7, 12000) < 1.3 * ttft(0.7, 3000));
  BOOST_TEST(ttft(1.4, 12000) > 2.5 * ttft(1.4, 3000));
}

// dynamo #12643: KV events were visible when a pass started, so that the router saw blocks that were not there yet.
BOOST_AUTO_TEST_CASE(a_prompt_is_found_in_a_cache_after_it_was_computed_and_not_before) {
  const test::LinearSteps steps(0.01, 1e-5, 0);
  SimulationOptions options;
  options.pools = {test::pool(EngineRole::aggregated, 1, 1, steps)};
  const std::vector<HashRun> prompt{{1, 100}};
  // The second comes while the first is computed (0.01 + 6,400 tokens x 10 us), the third after it.
  test::Scripted load({{0, 6400, 2, 1, prompt}, {0.03, 6400, 2, 1, prompt}, {1, 6400, 2, 1, prompt}});
  const test::Run run = test::simulate(options, load);
  BOOST_TEST(run.records.rows.at(0).hit_gpu_tokens == 0U);
  for (const RequestRecord& row : run.records.rows)
    if (row.hit_gpu_tokens > 0) BOOST_TEST(row.admitted_s >= run.records.rows.at(0).prompt_done_s);
  BOOST_TEST(run.records.rows.at(2).hit_gpu_tokens >= 6400U - 64U);
}

// dynamo #14423, SimAI #298: no P/D replay for some engines and models; expert parallelism failed without tensor parallelism.
BOOST_AUTO_TEST_CASE(every_model_runs_split_and_aggregated_and_with_experts_over_ranks_without_tensor_parallelism) {
  for (const char* model : {"deepseek-r1-nvfp4", "deepseek-v3", "kimi-k2.5", "deepseek-v4-pro", "deepseek-v4-flash", "deepseek-v4.1-flash"})
    for (const char* deployment : {"{prefill: {engines: 1, dep: 8}, decode: {engines: 1, dep: 16}}", "{prefill: {engines: 1, tp: 8}, decode: {engines: 1, tp: 8}}",
                                   "{aggregated: {engines: 1, dep: 8}}"})
      BOOST_TEST_CONTEXT(model << " " << deployment) {
        const Figures figures = figures_of(head + "rack: gb300-nvl72\nmodel: " + model + "\ndeployment: " + deployment + "\n" + closed(16, 2048, 32, 64));
        BOOST_TEST(figures.at("requests_completed") == 64);
      }
}

// aisimulate #275: no control over how data-parallel ranks are balanced.
BOOST_AUTO_TEST_CASE(balance_between_ranks_is_a_choice_that_shows) {
  const std::string uneven = split + "workload: {kind: closed_loop, concurrency: 200, input: 32K, output: 200, range_ratio: 0.05, requests: 1500}\n";
  BOOST_TEST(figures_of(uneven, {"deployment.router.balance=tokens"})["tpot_mean_s"] != figures_of(uneven, {"deployment.router.balance=count"})["tpot_mean_s"]);
}

// aisimulate #277, #288: TTFT left out host dispatch and waiting, and did not say where it starts.
BOOST_AUTO_TEST_CASE(ttft_starts_at_arrival_and_holds_host_time_and_waiting) {
  const Figures fast = figures_of(split + closed(1, 1024, 16, 20), {"deployment.host.mode=sync", "deployment.host.per_step=1 ms", "deployment.host.jitter=0 s"});
  const Figures slow = figures_of(split + closed(1, 1024, 16, 20), {"deployment.host.mode=sync", "deployment.host.per_step=21 ms", "deployment.host.jitter=0 s"});
  BOOST_TEST(slow.at("ttft_mean_s") - fast.at("ttft_mean_s") >= 0.0199);
  // One request inside at a time: the others' waiting at the door is theirs.
  const Figures door = figures_of(split + closed(8, 1024, 16, 80), {"deployment.router.admission.requests=1"});
  BOOST_TEST(door.at("ttft_mean_s") > 5 * figures_of(split + closed(1, 1024, 16, 80)).at("ttft_mean_s"));
}

// inference-sim #962: TTFT of split engines was reported 28 to 71 times too large.
BOOST_AUTO_TEST_CASE(splitting_adds_the_hand_over_to_ttft_and_no_more) {
  const std::string whole = head + "rack: gb300-nvl72\nmodel: deepseek-v4-flash\ndeployment: {aggregated: {engines: 1, dep: 4}}\n";
  const double together = figures_of(whole + closed(1, 32768, 64, 20))["ttft_mean_s"], apart = figures_of(split + closed(1, 32768, 64, 20))["ttft_mean_s"];
  BOOST_TEST(apart >= 0.9 * together);
  BOOST_TEST(apart <= 2 * together);
}

// Frontier #26: the time to first token of a prompt of 64K was off.
BOOST_AUTO_TEST_CASE(a_long_prompt_takes_the_sum_of_its_chunks) {
  const std::string whole = head + "rack: gb300-nvl72\nmodel: deepseek-v4-flash\ndeployment: {aggregated: {engines: 1, dep: 4, max_batched_tokens: 8K}}\n";
  const double half = figures_of(whole + closed(1, 32768, 2, 8))["ttft_mean_s"], all = figures_of(whole + closed(1, 65536, 2, 8))["ttft_mean_s"];
  BOOST_TEST(all >= 1.9 * half);   // later chunks attend to more
  BOOST_TEST(all <= 3 * half);
}
