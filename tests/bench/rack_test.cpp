// What whole scenarios cost: processor time and memory of the standard run, of many racks, of fidelity `flow`; and what the
// loads ask for. Printed beside the bars, not judged (machines and builds differ), except that memory grows with lanes and
// no faster. RACKCAST_BENCH_FULL=1 runs all sixteen racks instead of one.
#define BOOST_TEST_MODULE bench_rack
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "sim/engine/build.hpp"
#include "sim/engine/run.hpp"
#include "sim/trace/session_demand.hpp"
#include "tests/support/recorded_data.hpp"

using namespace rackcast;

namespace {

using Json = nlohmann::ordered_json;
const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});

struct Cost {
  double user_s = 0, peak_mib = 0;
  Json result;
};

// In a process of its own: SimGrid runs once in one, and its time and memory are this run's alone.
Cost cost_of(const YamlSource& source, const std::vector<std::string>& sets) {
  int ends[2];
  BOOST_REQUIRE(pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    close(ends[0]);
    std::string text;
    try {
      text = run_scenario(read_scenario(source, catalog, sets), catalog, {}).dump();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t count = write(ends[1], text.data() + sent, text.size() - sent);
      if (count <= 0) _exit(2);
      sent += static_cast<std::size_t>(count);
    }
    _exit(text.empty());
  }
  close(ends[1]);
  std::string text;
  char buffer[1 << 16];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  BOOST_REQUIRE(WIFEXITED(status));
  BOOST_REQUIRE(WEXITSTATUS(status) == 0);
  return {static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_utime.tv_usec) * 1e-6,
          static_cast<double>(usage.ru_maxrss) / 1024, Json::parse(text)};
}

void print(const std::string& what, const std::string& bar, const Cost& cost) {
  const Json& counts = cost.result["breakdown"]["counts"];
  const double requests = counts["arrivals"].get<double>();
  std::printf("%-88s %6.2f s, %4.0f MiB (%s); %.0f requests, %.1f us each, %llu events, %llu iterations, %llu flows\n", what.c_str(), cost.user_s, cost.peak_mib,
              bar.c_str(), requests, cost.user_s / requests * 1e6, counts["events"].get<unsigned long long>(),
              counts["iterations"].get<unsigned long long>(), counts["flows"].get<unsigned long long>());
}

YamlSource standard() { return read_source(std::string(RACKCAST_SOURCE_DIR) + "/scenarios/standard.yaml"); }

std::vector<std::string> racks(int count, int lanes, const char* duration, const char* network) {
  return {"rack.racks=" + std::to_string(count), "deployment.prefill.engines=" + std::to_string(8 * count),
          "deployment.decode.engines=" + std::to_string(count), "workload.concurrency=" + std::to_string(lanes), "workload.trace=generated-v1.0",
          "workload.warmup=preload", std::string("workload.duration=") + duration, std::string("network=") + network};
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_standard_run) {
  const char* bar = "bar 3 s, 600 MiB";
  print("standard.yaml: one NVL72, 8P1D, 3,072 lanes of the generated load, 30 min, simgrid", bar, cost_of(standard(), {"workload.trace=generated-v1.0"}));
  if (test_support::recorded_data("traces/kv-cache-tester/weka_rle.jsonl.gz"))
    print("standard.yaml: the same, recorded kv-cache-tester sessions", bar, cost_of(standard(), {}));
}

BOOST_AUTO_TEST_CASE(sixteen_racks) {
  const bool full = std::getenv("RACKCAST_BENCH_FULL") != nullptr;
  const int count = full ? 16 : 1;
  for (const auto& [network, bar_s] : {std::pair{"fluid", 60}, {"simgrid", 120}}) {
    const int lanes = 50000 * count / 16;
    print(std::to_string(count) + " of 16 racks, 8P1D each, " + std::to_string(lanes) + " lanes of the generated load, 10 min, " + network,
          "bar of 16: " + std::to_string(bar_s) + " s", cost_of(standard(), racks(count, lanes, "10 min", network)));
  }
}

BOOST_AUTO_TEST_CASE(memory_grows_with_lanes_and_no_faster) {
  std::vector<double> peaks;
  for (const int lanes : {6250, 12500, 25000}) peaks.push_back(cost_of(standard(), racks(1, lanes, "20 s", "fluid")).peak_mib);
  std::printf("peak of one rack with 6,250, 12,500, 25,000 lanes: %.0f, %.0f, %.0f MiB: %.1f and %.1f KiB a lane\n", peaks[0], peaks[1], peaks[2],
              (peaks[1] - peaks[0]) * 1024 / 6250, (peaks[2] - peaks[1]) * 1024 / 12500);
  BOOST_TEST(peaks[2] - peaks[1] < 1.5 * 2 * (peaks[1] - peaks[0]) + 10);
}

BOOST_AUTO_TEST_CASE(fidelity_flow) {
  const YamlSource source{"flow", "name: flow\nrack: gb300-nvl72\nmodel: deepseek-v4.1-flash\nfidelity: flow\n"
                                  "deployment: {aggregated: {engines: 1, dep: 8, max_batched_tokens: 2K}, kv_cache: {host_tier: 0 GiB per node},"
                                  " speculation: {draft_tokens: 5, acceptance_length: 3.51}}\n"
                                  "workload: {kind: closed_loop, concurrency: 64, input: 1K, output: 128, duration: 2 s, grace: 0 s}\n"};
  for (const char* network : {"fluid", "simgrid"}) {
    const Cost cost = cost_of(source, {std::string("network=") + network});
    print(std::string("fidelity flow, V4.1-Flash DEP8 on GB300, 64 users 1K/128, 2 simulated seconds, ") + network, "no bar", cost);
    std::printf("  %llu messages\n", cost.result["breakdown"]["counts"]["exchange_flows"].get<unsigned long long>());
  }
}

BOOST_AUTO_TEST_CASE(what_lanes_ask_of_a_server_without_latency) {
  const auto print_demand = [](const char* name) {
    TraceCache traces;
    constexpr std::uint32_t lanes = 3072;
    const LaneDemand demand = lane_demand({.trace = &traces.get(name)->trace, .plans = traces.plans(name), .lanes = lanes}, 1800);
    std::printf("%-16s %u lanes, 30 min: %.0f tok/s a lane, %.1f of them output, %.0f requests a lane-hour, mean input %.0f\n", name, lanes,
                demand.tokens_per_s / lanes, demand.output_tokens_per_s / lanes, demand.requests_per_lane_hour, demand.input_mean);
    const SessionDemand whole = session_demand(traces.get(name)->trace, *traces.plans(name), 300);
    std::printf("%-16s whole sessions: %.0f tok/s a lane, %.0f requests a lane-hour\n", name, whole.tokens_per_s, whole.requests_per_hour);
    return demand.tokens_per_s / lanes;
  };
  const double generated = print_demand("generated-v1.0");
  BOOST_TEST(generated > 0);
  if (test_support::recorded_data("traces/kv-cache-tester/weka_rle.jsonl.gz")) BOOST_TEST(generated > print_demand("kv-cache-tester"));
}
