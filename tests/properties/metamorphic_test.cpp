// What must hold between two runs, whatever the numbers: more of a resource never hurts, twice the rack with twice the load
// gives twice the throughput, faster kernels speed every percentile, and units are only spelling.
#define BOOST_TEST_MODULE metamorphic
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <regex>
#include <unistd.h>

#include "tests/support/figures.hpp"

using namespace rackcast;
using test::Figures;
namespace fs = std::filesystem;
namespace tt = boost::test_tools;

namespace {

// V4-Flash, split, closed loop: the decode engine is the bottleneck; agent sessions: caches and hand-overs matter.
const std::string common = "name: test\nmodel: deepseek-v4.1-flash\nnetwork: fluid\nprices: {list: deepseek-2026-09}\nrack: gb300-nvl72\n"
                           "deployment:\n  prefill: {engines: 2, dep: 4}\n  decode: {engines: 1, dep: 8, max_requests_per_rank: 64}\n"
                           "  speculation: {draft_tokens: 5, acceptance_length: 3.51}\n";
const std::string closed = "workload: {kind: closed_loop, concurrency: 256, input: 16K, output: 512, range_ratio: 0.6, duration: 60 s}\n";
const std::string agents = "workload: {kind: agentx, trace: generated-v1.0, concurrency: 256, duration: 180 s, warmup: preload}\n";

Figures run(const std::string& workload, const std::vector<std::string>& sets = {}) { return test::figures_of(common + workload, sets); }

// Run to run, a seed moves these by about a percent.
constexpr double noise = 0.015;

}  // namespace

BOOST_AUTO_TEST_CASE(more_bandwidth_or_memory_never_lowers_throughput) {
  for (const std::string& workload : {closed, agents}) {
    const double before = run(workload)["total_tok_s_rack"];
    for (const std::string set : {"rack.gpu.nvlink_bandwidth=1800 GB/s", "rack.gpu.host_bandwidth=900 GB/s", "rack.gpu.memory=560 GB", "rack.nic_bandwidth=800 GB/s",
                                  "rack.host_memory_bandwidth=2000 GB/s", "deployment.kv_cache.host_tier=800 GiB per node"})
      BOOST_TEST_CONTEXT(set << " with " << workload) BOOST_TEST(run(workload, {set})["total_tok_s_rack"] >= before * (1 - noise));
  }
}

BOOST_AUTO_TEST_CASE(one_more_engine_never_lowers_throughput) {
  for (const std::string& workload : {closed, agents}) {
    const double before = run(workload)["total_tok_s_rack"];
    for (const std::string set : {"deployment.prefill.engines=3", "deployment.decode.engines=2"})
      BOOST_TEST_CONTEXT(set << " with " << workload) BOOST_TEST(run(workload, {set})["total_tok_s_rack"] >= before * (1 - noise));
  }
}

BOOST_AUTO_TEST_CASE(twice_the_racks_with_twice_the_lanes_give_twice_the_throughput) {
  const double one = run(closed, {"workload.concurrency=256"})["total_tok_s_rack"];
  const double two = run(closed, {"workload.concurrency=512", "rack.racks=2", "deployment.prefill.engines=4", "deployment.decode.engines=2"})["total_tok_s_rack"];
  BOOST_TEST(two == one, tt::tolerance(0.02));  // per rack
}

// The GB300's cost file with every time a fifth shorter and every rate a quarter higher.
std::string faster_costs() {
  const fs::path path = fs::temp_directory_path() / fmt::format("rackcast-faster-{}.yaml", ::getpid());
  std::ifstream in(RACKCAST_SOURCE_DIR "/scenarios/costs/gb300.yaml");
  std::ofstream out(path);
  const std::regex key(R"(^\s+(\w+):$)"), figure(R"(^(\s+(?:value|lo|hi): )(\S+)$)");
  double factor = 1;
  std::smatch found;
  for (std::string line; std::getline(in, line); out << line << '\n') {
    if (std::regex_match(line, found, key)) {
      const std::string name = found[1];
      factor = name.ends_with("_us") || name.ends_with("_ns") ? 0.8 : name.ends_with("gbs") || name.ends_with("tflops") ? 1.25 : 1;
    } else if (std::regex_match(line, found, figure)) {
      line = fmt::format("{}{}", found[1].str(), std::stod(found[2]) * factor);
    }
  }
  return path.string();
}

BOOST_AUTO_TEST_CASE(a_faster_cost_file_speeds_every_percentile) {
  const std::string file = faster_costs();
  for (const std::string& workload : {closed, agents}) {
    Figures before = run(workload), after = run(workload, {"deployment.prefill.cost=" + file, "deployment.decode.cost=" + file});
    for (const char* name : {"ttft_p50_s", "ttft_p90_s", "ttft_p99_s", "tpot_mean_s", "tpot_p50_s", "tpot_p90_s", "e2e_mean_s"})
      BOOST_TEST_CONTEXT(name << " with " << workload) BOOST_TEST(after.at(name) < before.at(name));
    for (const char* name : {"p50_tok_s_user", "p90_tok_s_user", "p99_tok_s_user"})
      BOOST_TEST_CONTEXT(name << " with " << workload) BOOST_TEST(after.at(name) > before.at(name));
    BOOST_TEST(after.at("tpot_p50_s") < 0.95 * before.at("tpot_p50_s"));
  }
  fs::remove(file);
}

BOOST_AUTO_TEST_CASE(units_are_only_spelling) {
  const Figures before = run(closed);
  const Figures same = run("workload: {kind: closed_loop, concurrency: 256, input: 16384, output: 512, range_ratio: 0.6, duration: 60000 ms}\n",
                           {"rack.gpu.nvlink_bandwidth=0.9 TB/s", "deployment.prefill.max_batched_tokens=16384"});
  BOOST_TEST(before == same);
}

BOOST_AUTO_TEST_CASE(more_users_never_lower_throughput_nor_quicken_a_user) {
  Figures before = run(closed, {"workload.concurrency=32"});
  for (const int users : {64, 128, 256, 512}) {
    Figures now = run(closed, {"workload.concurrency=" + std::to_string(users)});
    BOOST_TEST_CONTEXT(users << " users") {
      BOOST_TEST(now["total_tok_s_rack"] >= before["total_tok_s_rack"] * (1 - noise));
      BOOST_TEST(now["p50_tok_s_user"] <= before["p50_tok_s_user"] * (1 + noise));
    }
    before = std::move(now);
  }
}
