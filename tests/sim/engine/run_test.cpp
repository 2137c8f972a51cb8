#define BOOST_TEST_MODULE run
#include "sim/engine/run.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

#include "sim/engine/build.hpp"
#include "tests/support/small_rack.hpp"

using namespace rackcast;
namespace fs = std::filesystem;
namespace tt = boost::test_tools;

namespace {

const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});

Scenario scenario(const std::string& deployment, const std::string& workload, const std::vector<std::string>& sets = {}) {
  return read_scenario(YamlSource{"test", "name: test\nrack: gb300-nvl72\nmodel: deepseek-v4.1-flash\nnetwork: fluid\n"
                                  "prices: {list: deepseek-2026-09}\n" + deployment + workload}, catalog, sets);
}

const std::string split = "deployment:\n  prefill: {engines: 1, dep: 4}\n  decode: {engines: 1, dep: 8}\n"
                          "  speculation: {draft_tokens: 5, acceptance_length: 3.51}\n";
const std::string closed = "workload: {kind: closed_loop, concurrency: 32, input: 8K, output: 256, range_ratio: 0.8, requests: 400, warmup_count: 64}\n";

nlohmann::ordered_json run(const Scenario& s, const std::string& out_dir = {}) {
  nlohmann::ordered_json result = run_scenario(s, catalog, {.out_dir = out_dir, .progress = {}});
  result["manifest"].erase("timing");
  return result;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_same_scenario_and_seed_give_the_same_bytes_and_another_seed_does_not) {
  Scenario s = scenario(split, closed);
  const std::string first = run(s).dump(), second = run(s).dump();
  BOOST_TEST(first == second);
  s.seed = 7;
  BOOST_TEST(run(s)["metrics"].dump() != nlohmann::ordered_json::parse(first)["metrics"].dump());
}

BOOST_AUTO_TEST_CASE(the_kept_folder_holds_what_runs_again_to_the_same_result) {
  const fs::path folder = fs::temp_directory_path() / ("rackcast-run-test-" + std::to_string(::getpid()));
  const auto result = run(scenario(split, closed), folder.string());
  const Scenario again = read_scenario((folder / "resolved.yaml").string(), catalog, {});
  BOOST_TEST(run(again)["metrics"].dump() == result["metrics"].dump());
  const std::string rows = text_of(folder / "requests.csv");
  BOOST_TEST(std::count(rows.begin(), rows.end(), '\n') == 401);
  BOOST_TEST(fs::exists(folder / "manifest.json"));
  BOOST_TEST(nlohmann::json::parse(text_of(folder / "result.json")).contains("breakdown"));
  fs::remove_all(folder);
}

BOOST_AUTO_TEST_CASE(every_headline_number_says_what_its_time_rests_on_and_the_shares_add_up) {
  const auto result = run(scenario(split, closed));
  for (const MetricDefinition& d : metric_definitions()) {
    BOOST_TEST(result["metrics"].contains(d.name));
    if (!d.headline) continue;
    double sum = 0;
    for (const auto& [basis, value] : result["breakdown"]["basis"][std::string(d.name)].items()) sum += value.get<double>();
    BOOST_TEST_CONTEXT(d.name) BOOST_TEST(sum == 1.0, tt::tolerance(1e-9));
  }
  for (const auto& pool : result["breakdown"]["pools"]) {
    const auto& parts = pool["mean_iteration"];
    double sum = 0;
    for (const char* part : {"attention_s", "moe_s", "other_s", "head_s", "draft_s", "host_s"}) sum += parts[part].get<double>();
    BOOST_TEST(sum == parts["total_s"].get<double>(), tt::tolerance(1e-6));
  }
}

BOOST_AUTO_TEST_CASE(a_deployment_that_does_not_fit_is_refused_with_the_sum_line_by_line) {
  const Scenario s = scenario("deployment:\n  aggregated: {engines: 1, tp: 1}\n", closed);
  BOOST_CHECK_EXCEPTION(run(s), UserError, [](const UserError& error) {
    const std::string text = error.what();
    return text.find("routed experts") != std::string::npos && text.find("GB") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(prefill_only_and_aggregated_deployments_run) {
  const auto prefill = run(scenario("deployment:\n  prefill: {engines: 2, dep: 4}\n", closed, {"workload.output_limit=1"}));
  BOOST_TEST(prefill["metrics"]["requests_completed"].get<double>() == 400);
  BOOST_TEST(prefill["metrics"]["p90_tok_s_user"].is_null());  // one token an answer: no inter-token time
  BOOST_TEST(prefill["metrics"]["output_tok_s_gpu"].get<double>() > 0);
  const auto aggregated = run(scenario("deployment:\n  aggregated: {engines: 1, tp: 4}\n", closed));
  BOOST_TEST(aggregated["metrics"]["requests_completed"].get<double>() == 400);
  BOOST_TEST(aggregated["metrics"]["p90_tok_s_user"].get<double>() > 0);
}

// Endless cache, no guards, a server that takes no time worth mentioning, and one session a lane: the cache finds exactly
// what the trace says an endless cache would.
BOOST_AUTO_TEST_CASE(a_replay_with_an_endless_cache_and_no_guards_reproduces_the_ideal_hit) {
  const char* data = std::getenv("RACKCAST_DATA");
  if (!data) {
    BOOST_TEST_REQUIRE(std::getenv("RACKCAST_DATA_REQUIRED") == nullptr);
    BOOST_TEST_MESSAGE("skipped: RACKCAST_DATA is not set");
    return;
  }
  const NamedTrace named = open_trace("kv-cache-tester");
  BOOST_TEST_REQUIRE(named.note.empty());
  const Trace& trace = named.trace;
  AgentxOptions agentx{.trace = &trace, .lanes = static_cast<std::uint32_t>(trace.sessions.size()), .start_min = 0, .start_max = 0,
                       .warmup_requests = 0, .tree_idle_cap_s = 0, .system_idle_cap_s = 0};
  const auto load = make_agentx(agentx);
  const test::LinearSteps instant(1e-9, 0, 0);
  SimulationOptions options;
  options.pools = {test::pool(EngineRole::aggregated, 1, 1, instant)};
  options.pools[0].shape.limits = {1U << 30, 1U << 20};
  options.duration_s = 4 * 3600;
  const test::Run result = test::simulate(options, *load);
  double hit = 0, ideal = 0;
  for (const RequestRecord& row : result.records.rows) {
    hit += row.hit_gpu_tokens;
    ideal += row.hit_ideal_tokens;
    if (row.hit_gpu_tokens != row.hit_ideal_tokens) BOOST_REQUIRE_EQUAL(row.hit_gpu_tokens, row.hit_ideal_tokens);
  }
  BOOST_TEST(hit == ideal);
  BOOST_TEST(hit > 0);
}

// Many lanes on few prefill engines: prefix caches overflow, and requests hold, branch off and cut what others grow.
BOOST_AUTO_TEST_CASE(a_rack_short_of_prefill_memory_gives_all_its_kv_space_back) {
  const Scenario s = read_scenario(std::string(RACKCAST_SOURCE_DIR) + "/scenarios/standard.yaml", catalog,
                                   {"network=fluid", "deployment.prefill.engines=1", "deployment.decode.dep=8", "workload.trace=generated-v1.0",
                                    "workload.concurrency=512", "workload.warmup=preload", "workload.duration=3 min"});
  BuiltRun built = build_run(s, catalog);
  built.options.pools.front().shape.kv_tokens = 8'000'000;  // of a rank, for 128 lanes of some 100,000 tokens
  test::Records records;
  const auto network = make_fluid_network();
  const SimulationOutcome outcome = Simulation(built.options, *built.load, *network, records).run();  // balances its KV space at the end
  BOOST_TEST(outcome.evicted_tokens > 0);
  BOOST_TEST(outcome.finished_measured > 1000U);
}

// Sessions that grow: the last answer is computed again, and so is what a fork shares with others beyond the last interval.
BOOST_AUTO_TEST_CASE(prompts_that_go_on_from_kept_states_only_find_less_and_never_more_the_rarer_these_are) {
  const std::string one = "deployment:\n  aggregated: {engines: 1, dep: 8}\n";
  const std::string sessions = "workload: {kind: agentx, trace: generated-v1.0, concurrency: 32, duration: 3 min, warmup: preload}\n";
  double hit = 1;
  for (const char* interval : {"0", "1K", "32K", "1024M"}) {
    const auto metrics = run(scenario(one, sessions, {std::string("deployment.kv_cache.retention_interval=") + interval}))["metrics"];
    const double found = metrics["cache_hit_total"].get<double>();
    BOOST_TEST(found < hit);
    BOOST_TEST(found > 0.8);
    hit = found;
  }
}

BOOST_AUTO_TEST_CASE(iterations_for_answers_between_prompts_make_tokens_come_sooner_and_prompts_wait) {
  const std::string one = "deployment:\n  aggregated: {engines: 1, dep: 8, max_batched_tokens: 2K}\n";
  const auto free = run(scenario(one, closed))["metrics"];
  const auto held = run(scenario(one, closed, {"deployment.aggregated.answer_iterations=8"}))["metrics"];
  BOOST_TEST(held["tpot_mean_s"].get<double>() < 0.9 * free["tpot_mean_s"].get<double>());
  BOOST_TEST(held["ttft_mean_s"].get<double>() > 1.5 * free["ttft_mean_s"].get<double>());
  BOOST_TEST(held["requests_completed"] == free["requests_completed"]);
  const auto chunked = run(scenario(one, closed, {"deployment.aggregated.prompt_chunk=256"}))["metrics"];
  BOOST_TEST(chunked["ttft_mean_s"].get<double>() > 1.5 * free["ttft_mean_s"].get<double>());
}
