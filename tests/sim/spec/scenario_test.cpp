#define BOOST_TEST_MODULE scenario
#include <boost/test/unit_test.hpp>

#include "sim/spec/scenario.hpp"

using namespace rackcast;

namespace {

const std::string folder = RACKCAST_SOURCE_DIR "/scenarios";
const Catalog catalog({folder});

Scenario standard(const std::vector<std::string>& sets = {}) { return read_scenario(folder + "/standard.yaml", catalog, sets); }
std::string problems(const std::vector<std::string>& sets, const std::string& file = "standard") {
  try {
    read_scenario(folder + "/" + file + ".yaml", catalog, sets);
  } catch (const UserError& error) {
    std::string text = error.what();
    for (std::size_t at = 0; (at = text.find(folder + "/", at)) != std::string::npos;) text.erase(at, folder.size() + 1);
    return text;
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_file_of_the_catalog_reads) {
  for (const std::string& name : catalog.names("gpus"))
    BOOST_TEST(read_yaml_as<GpuSpec>(catalog.find("gpus", name), catalog.read_options({}, "gpus")).name == name);
  for (const std::string& name : catalog.names("racks"))
    BOOST_TEST(read_yaml_as<RackSpec>(catalog.find("racks", name), catalog.read_options({}, "racks")).name == name);
  for (const std::string& name : catalog.names("prices"))
    BOOST_TEST(read_yaml_as<PriceList>(catalog.find("prices", name), catalog.read_options({}, "prices")).name == name);
  for (const char* name : {"standard", "handover", "prefill-only", "low-latency", "failures", "adaptive-verification"})
    BOOST_TEST(read_scenario(catalog.path_of(".", name), catalog, {}).name == name);
  BOOST_TEST(catalog.names("gpus").size() == 6U);
  BOOST_TEST(catalog.names("racks").size() == 6U);
}

BOOST_AUTO_TEST_CASE(the_sketch_of_the_scenario_file_reads) {
  const char* text = R"(
name: one-rack-8p1d
rack: gb300-nvl72          # scenarios/racks
model: deepseek-v4.1-flash # scenarios/models
deployment:
  prefill: {engines: 8, dep: 4, max_batched_tokens: 16K}
  decode:  {engines: 1, dep: 32, max_requests_per_rank: 128}
  router: {policy: prefix_affinity}
  kv_cache: {host_tier: 840 GiB per node, format: nvfp4}
  kv_transfer: {mode: push}
  engram: host                # hbm | peer | host
  eplb: {policy: none, redundant_experts: 32, window: 1000, interval: 3000}
  speculation: {draft_tokens: 5, acceptance_length: 3.51}
workload:
  kind: agentx
  trace: generated-v1.0     # or a path; kv-cache-tester is the recorded one
  concurrency: 3072
  duration: 30 min
prices: {list: deepseek-2026-09, period: off_peak, gpu: owning}
uncertainty: 16
)";
  const Scenario s = read_scenario(YamlSource{"sketch.yaml", text}, catalog, {});
  BOOST_TEST(s.deployment.gpus() == 64);
  BOOST_TEST(s.deployment.kv_cache.host_tier_per_node.value() == 840 * 0x1p30);
  BOOST_TEST(s.rack.gpu.name == "gb300");
  BOOST_TEST(s.prices.list.models.at("deepseek-v4.1-flash").off_peak.input.value() == 0.15 / 1e6);
  BOOST_TEST(s.workload.duration.value() == 1800);
}

BOOST_AUTO_TEST_CASE(a_resolved_scenario_reads_back_equal) {
  for (const char* name : {"standard", "handover", "prefill-only", "low-latency", "failures", "adaptive-verification"}) {
    const std::string text = yaml_of(read_scenario(catalog.path_of(".", name), catalog, {}));
    const Scenario again = read_yaml_as<Scenario>({"resolved.yaml", text});
    BOOST_TEST(yaml_of(again) == text);
  }
}

BOOST_AUTO_TEST_CASE(a_base_scenario_may_be_changed_in_part) {
  const Scenario s = read_scenario(catalog.path_of(".", "handover"), catalog, {});
  BOOST_CHECK(s.deployment.kv_transfer.mode == KvTransferMode::pull);
  BOOST_TEST(s.deployment.prefill->engines == 8);
  BOOST_TEST(s.workload.trace == "generated-v1.0");
}

BOOST_AUTO_TEST_CASE(set_reaches_every_file) {
  BOOST_TEST(standard({"rack.gpus=64"}).rack.gpus == 64);
  BOOST_TEST(standard({"rack.gpu.memory=100 GiB"}).rack.gpu.memory.value() == 100 * 0x1p30);
  BOOST_TEST(standard({"rack.gpu=h200"}).rack.gpu.name == "h200");
  BOOST_TEST(standard({"prices.list.models.\"deepseek-v4.1-flash\".off_peak.input=1 USD/Mtok"})
                 .prices.list.models.at("deepseek-v4.1-flash").off_peak.input.value() == 1.0 / 1e6);
  BOOST_TEST(standard({"model=deepseek-r1"}).model.name == "deepseek-r1");
}

BOOST_AUTO_TEST_CASE(engines_must_fit_the_racks) {
  BOOST_TEST(problems({"rack.gpus=64"}).empty());
  BOOST_TEST(problems({"rack.gpus=60"}) == "standard.yaml:11:3: deployment: needs 64 GPUs, but 1 x gb300-nvl72 has 60");
  BOOST_TEST(problems({"rack.gpus=60", "rack.racks=2"}).empty());
  BOOST_TEST(problems({"rack=hgx-h200", "rack.gpus=64"}).empty());
  BOOST_TEST(problems({"rack=hgx-h200", "rack.gpus=64", "deployment.decode.dep=12"}) ==
             "standard.yaml:11:3: deployment: decode: an engine of 12 ranks neither fits one NVLink domain of 8 GPUs nor fills whole ones");
}

BOOST_AUTO_TEST_CASE(pools_must_make_sense) {
  BOOST_TEST(problems({"deployment.decode.dep=0"}).find("deployment.decode.dep: give one of dep and tp (it is '0')") != std::string::npos);
  BOOST_TEST(problems({"deployment.decode.tp=4"}).find("deployment.decode.tp: give one of dep and tp (it is '4')") != std::string::npos);
  BOOST_TEST(problems({"deployment.prefill=null"}).find("deployment: needs prefill and decode, or aggregated, or prefill alone") != std::string::npos);
  BOOST_TEST(problems({"deployment.prefill=null", "deployment.aggregated={engines: 1, dep: 8}"})
                 .find("deployment.decode: aggregated engines decode themselves: drop decode") != std::string::npos);
  BOOST_TEST(problems({"deployment.prefill=null", "deployment.decode=null", "deployment.aggregated={engines: 1, dep: 8}"}).empty());
  BOOST_TEST(problems({"deployment.decode=null"}).find("workload: prefill engines alone give one token a request") != std::string::npos);
  BOOST_TEST(problems({"deployment.decode=null", "workload.output_limit=1"}).empty());
  BOOST_TEST(problems({"workload.output_limit=1"}).find("workload: with output_limit 1 the decode engines would never work") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(both_sides_of_every_rule) {
  struct Case { const char *good, *bad, *message; };
  constexpr Case cases[] = {
      {"workload.concurrency=1", "workload.concurrency=0", "workload.concurrency: must be 1 to 1000000 (it is '0')"},
      {"workload.duration=1 s", "workload.duration=0", "workload.duration: must be > 0 s, at most 2400 h (it is '0')"},
      {"workload.start_max=1", "workload.start_max=1.01", "workload.start_max: must be in [start_min, 1] (it is '1.01')"},
      {"workload.range_ratio=1", "workload.range_ratio=0", "workload.range_ratio: must be in (0, 1] (it is '0')"},
      {"uncertainty=1000", "uncertainty=1001", "uncertainty: must be 0 to 1000 (it is '1001')"},
      {"deployment.kv_cache.memory_fraction=1", "deployment.kv_cache.memory_fraction=1.1",
       "deployment.kv_cache.memory_fraction: must be in (0, 1] (it is '1.1')"},
      {"deployment.kv_cache.host_tier=auto", "deployment.kv_cache.host_tier=-1 GiB per node",
       "deployment.kv_cache.host_tier: '-1 GiB per node' must be >= 0, or auto"},
      {"deployment.kv_cache.when_full=preempt", "deployment.kv_cache.when_full=drop",
       "deployment.kv_cache.when_full: 'drop' must be one of wait, preempt"},
      {"deployment.speculation.acceptance_length=6", "deployment.speculation.acceptance_length=6.1",
       "deployment.speculation.acceptance_length: must be at most 1 + draft_tokens (it is '6.1')"},
      {"deployment.router.load_limit=1", "deployment.router.load_limit=0.9", "deployment.router.load_limit: must be >= 1 (it is '0.9')"},
      {"deployment.eplb.periodic_async.link_share=0.5", "deployment.eplb.periodic_async.link_share=0",
       "deployment.eplb.periodic_async.link_share: must be in (0, 0.9] (it is '0')"},
      {"rack.racks=1", "rack.racks=0", "rack.racks: must be 1 to 10000 (it is '0')"},
      {"rack.host_tier_per_node=900 GB", "rack.host_tier_per_node=961 GB",
       "rack.host_tier_per_node: must fit in host_memory_per_node (it is '961 GB')"},
      {"deployment.decode.max_requests_per_rank=1", "deployment.decode.max_requests_per_rank=0",
       "deployment.decode.max_requests_per_rank: must be > 0 (it is '0')"},
      {"prices.list.peak_hours_utc=[23]", "prices.list.peak_hours_utc=[24]", "prices.list.peak_hours_utc: hours are 0 to 23"},
  };
  for (const Case& c : cases) {
    BOOST_TEST(problems({c.good}).empty(), c.good << ": " << problems({c.good}));
    BOOST_TEST(problems({c.bad}) == std::string("--set ") + c.bad + ": " + c.message);
  }
}

BOOST_AUTO_TEST_CASE(poisson_arrivals_need_a_rate) {
  BOOST_TEST(problems({"workload.kind=open_loop", "workload.arrivals=poisson", "workload.rate=20 /s"}).empty());
  BOOST_TEST(problems({"workload.kind=open_loop", "workload.arrivals=poisson"}).find("poisson arrivals need a rate > 0, as in '20 /s'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(acceptance_by_position_and_its_mean_agree) {
  const std::vector<std::string> rates = {"deployment.speculation={draft_tokens: 2, acceptance: [0.8, 0.5]}"};
  BOOST_TEST(standard(rates).deployment.speculation.acceptance_length == 1 + 0.8 + 0.4, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(problems({"deployment.speculation={draft_tokens: 2, acceptance: [0.8, 0.5], acceptance_length: 2.5}"})
                 .find("contradicts acceptance") != std::string::npos);
  BOOST_TEST(problems({"deployment.speculation={draft_tokens: 2, acceptance: [0.8]}"}).find("needs one rate per draft token") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_preset_gives_the_published_length_of_its_drafts) {
  const auto s = standard({"deployment.speculation={draft_tokens: 3, preset: v4-pro-dspark}"});
  BOOST_TEST(s.deployment.speculation.acceptance.size() == 3U);
  BOOST_TEST(s.deployment.speculation.acceptance_length == 3.08, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(problems({"deployment.speculation={draft_tokens: 3, preset: v4.1-flash-dspark}"}).find("no length for this number") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(failures_name_engines_that_exist_and_say_when) {
  const auto event = [](const std::string& text) { return problems({"failures.events=[{" + text + "}]"}); };
  BOOST_TEST(event("kind: engine, pool: decode, engine: 0, at: 5 s").empty());
  BOOST_TEST(event("kind: engine, pool: decode, engine: 1, at: 5 s").find("the pool has engines 0 to 0") != std::string::npos);
  BOOST_TEST(event("kind: gpu, pool: decode, gpu: 31, at: 5 s").empty());
  BOOST_TEST(event("kind: gpu, pool: decode, gpu: 32, at: 5 s").find("an engine has GPUs 0 to 31") != std::string::npos);
  BOOST_TEST(event("kind: engine, pool: aggregated, at: 5 s").find("there is no such pool") != std::string::npos);
  BOOST_TEST(event("kind: engine, pool: decode").find("give one of at and every") != std::string::npos);
  BOOST_TEST(event("kind: engine, pool: decode, at: 5 s, every: 5 s").find("give one of at and every") != std::string::npos);
  BOOST_TEST(event("kind: straggler, pool: decode, at: 5 s, share: 1").find("use kind gpu") != std::string::npos);
  BOOST_TEST(event("kind: nic, pool: decode, at: 5 s").find("must come back") != std::string::npos);
  BOOST_TEST(event("kind: nic, pool: decode, at: 5 s, lasts: 1 s").empty());
}

BOOST_AUTO_TEST_CASE(numbers_that_no_machine_could_simulate_are_refused) {
  for (const char* set : {"workload.concurrency=2147483647", "workload.duration=1e300 min", "workload.grace=1e300 h", "rack.racks=2147483647",
                          "rack.gpus=2147483647", "deployment.prefill.engines=100000", "deployment.decode.dep=100000",
                          "deployment.prefill.max_batched_tokens=2000000000000", "deployment.eplb.redundant_experts=2147483647",
                          "workload.rate=1e300 /s", "workload.input=100000000000", "failures.events=[{every: 1 ns}]"})
    BOOST_TEST(!problems({set}).empty(), set);
  BOOST_TEST(problems({"workload.concurrency=100000"}).empty());
}

BOOST_AUTO_TEST_CASE(prompts_of_a_fixed_length_fit_the_models_context) {
  BOOST_TEST(problems({"workload.kind=closed_loop", "workload.input=1M"}).empty());
  BOOST_TEST(problems({"workload.kind=closed_loop", "workload.input=2M"}).find("workload: input must be within the model's context of 1048576") != std::string::npos);
  BOOST_TEST(!problems({"workload.kind=open_loop", "workload.arrivals=poisson", "workload.rate=1 /s", "workload.input=2M"}).empty());
}

BOOST_AUTO_TEST_CASE(a_problem_in_one_part_does_not_breed_others) {
  BOOST_TEST(problems({"rack.gpus=many"}) == "--set rack.gpus=many: rack.gpus: 'many' is not a whole number");
  BOOST_TEST(problems({"rack=gb300-nvl27"}).find("did you mean 'gb300-nvl72'?") != std::string::npos);
}
