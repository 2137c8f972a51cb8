// How fast the engine is. First with the shipped cost models: requests and steps per second of fixed loads on one core,
// printed, not judged (machines differ). Then what does not depend on the machine: events, iterations, flows and memory
// allocations of runs with a fixed cost, compared with the stored ones below, and memory over a hundred times longer run.
#define BOOST_TEST_MODULE bench_engine
#include <malloc.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>

#include "sim/engine/build.hpp"
#include "sim/engine/recorder.hpp"
#include "tests/support/fixed_loads.hpp"

using namespace rackcast;
using namespace rackcast::test;

namespace {

std::atomic<std::uint64_t> allocations{0};

// Time of one core; unlike the wall clock it does not see what else the machine does.
double processor_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});

struct Bench {
  const char* load;
  double bar;                 // requests per second
  std::string deployment, workload;
  std::int64_t kv_tokens = 0; // 0: what memory holds
  const char* model = "deepseek-v4-flash";
  const char* rack = "{base: hgx-h200, gpus: 16, nvlink_domain: 16}";
};

void measure(const Bench& bench) {
  const std::string text = std::string("name: bench\nrack: ") + bench.rack + "\nmodel: " + bench.model + "\nnetwork: fluid\n" +
                           "deployment: " + bench.deployment + "\nworkload: " + bench.workload + "\n";
  BuiltRun built = build_run(read_scenario(YamlSource{"bench", text}, catalog, {}), catalog);
  if (bench.kv_tokens > 0)
    for (PoolOptions& pool : built.options.pools) {
      pool.shape.kv_tokens = bench.kv_tokens;
      pool.shape.kv_fixed_tokens = 0;
      pool.shape.when_full = KvFullPolicy::preempt;
    }
  Recorder recorder({}, {});
  const auto network = make_fluid_network();
  const double start = processor_s();
  const SimulationOutcome outcome = Simulation(built.options, *built.load, *network, recorder).run();
  const double seconds = processor_s() - start;
  std::printf("%-96s %8.0f requests/s (bar %.0f) %9.0f steps/s, hit %.3f, put back %lu\n", bench.load, static_cast<double>(outcome.finished_measured) / seconds,
              bench.bar, static_cast<double>(outcome.iterations) / seconds, recorder.statistics.hit_gpu / std::max(1.0, recorder.statistics.block_tokens), outcome.preemptions);
  BOOST_TEST(outcome.finished_measured > 0U);
  BOOST_TEST(outcome.refused == 0U);
}

struct Counts {
  std::uint64_t events, iterations, flows, allocations;
};

Counts count(bool split, std::uint64_t requests) {
  const LinearSteps steps(5e-3, 2e-6, 2e-5);
  const auto load = sessions(requests);
  const auto network = make_fluid_network();
  RunObserver nobody;
  Simulation simulation(fixed_cost(steps, split), *load, *network, nobody);
  const std::uint64_t before = allocations;
  const SimulationOutcome outcome = simulation.run();
  return {outcome.events, outcome.iterations, outcome.flows, allocations - before};
}

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

BOOST_AUTO_TEST_CASE(requests_per_second_of_fixed_loads) {
  const std::string one = "{aggregated: {engines: 1, tp: 4, max_batched_tokens: 8K, max_requests_per_rank: 256}, kv_cache: {host_tier: 0 GiB per node}}";
  const std::string four = "{aggregated: {engines: 4, tp: 4, max_batched_tokens: 2K, max_requests_per_rank: 256}, router: {policy: round_robin}, kv_cache: {host_tier: 0 GiB per node}}";
  const Bench benches[] = {
      {"closed loop, 64 users, 1,024/128, one engine TP4", 400000, one, "{kind: closed_loop, concurrency: 64, input: 1K, output: 128, requests: 200000}"},
      {"the same, lengths uniform in +-20%", 100000, one, "{kind: closed_loop, concurrency: 64, input: 1229, output: 154, range_ratio: 0.6667, requests: 100000}"},
      {"10,000 requests 1,024/256, Poisson 20/s, 4 engines TP4", 100000, four, "{kind: open_loop, arrivals: poisson, rate: 20 /s, input: 1K, output: 256, requests: 10000}"},
      {"1P2D TP4, 64 users, 1,024/128, KV transfer at 400 GB/s", 60000,
       "{prefill: {engines: 1, tp: 4, max_batched_tokens: 8K, max_requests_per_rank: 16}, decode: {engines: 2, tp: 4}, kv_cache: {host_tier: 0 GiB per node}}",
       "{kind: closed_loop, concurrency: 64, input: 1K, output: 128, requests: 60000}", 0, "deepseek-v4-flash",
       "{base: hgx-h200, gpus: 16, nvlink_domain: 16, gpu: {base: h200, nvlink_bandwidth: 400 GB/s}}"},
      {"DeepSeek-R1, 2 engines DEP8, 128 users, 1,024/128", 60000,
       "{aggregated: {engines: 2, dep: 8, max_batched_tokens: 8K}, router: {policy: least_loaded}, kv_cache: {host_tier: 0 GiB per node}}",
       "{kind: closed_loop, concurrency: 128, input: 1K, output: 128, requests: 60000}", 0, "deepseek-r1"},
      {"sessions of 4 turns, 1,024 new/128, half the prefix shared in 16 groups, 16 users, KV of 32,768 tokens", 60000, one,
       "{kind: closed_loop, concurrency: 16, turns: 4, input: 1K, output: 128, shared_prefix: 0.5, prefix_groups: 16, requests: 60000}", 32768},
  };
  for (const Bench& bench : benches) measure(bench);
}

// Counts change only when the engine does more or less work for the same run: say why in the commit.
BOOST_AUTO_TEST_CASE(events_iterations_flows_and_allocations_are_the_stored_ones) {
  const Counts aggregated = count(false, 20000), split = count(true, 20000);
  std::printf("aggregated: %lu events, %lu iterations, %lu flows, %lu allocations\n", aggregated.events, aggregated.iterations, aggregated.flows, aggregated.allocations);
  std::printf("split: %lu events, %lu iterations, %lu flows, %lu allocations\n", split.events, split.iterations, split.flows, split.allocations);
  BOOST_TEST(aggregated.events == 29544U);
  BOOST_TEST(aggregated.iterations == 29543U);
  BOOST_TEST(aggregated.flows == 0U);
  BOOST_TEST(aggregated.allocations < 400U);  // of 20,000 requests: arenas grow, requests do not allocate
  BOOST_TEST(split.events == 64344U);
  BOOST_TEST(split.iterations == 29730U);
  BOOST_TEST(split.flows == 20000U);
  BOOST_TEST(split.allocations < 400U);
}

BOOST_AUTO_TEST_CASE(a_hundred_times_longer_run_needs_no_more_memory_and_no_more_time_a_request) {
  const LinearSteps steps(5e-3, 2e-6, 2e-5);
  const auto heap_after = [&](std::uint64_t requests, double& seconds_a_request) {
    const auto load = sessions(requests);
    const auto network = make_fluid_network();
    Recorder recorder({}, {});
    Simulation simulation(fixed_cost(steps, false), *load, *network, recorder);
    const double start = processor_s();
    simulation.run();
    seconds_a_request = (processor_s() - start) / static_cast<double>(requests);
    const struct mallinfo2 heap = mallinfo2();
    return static_cast<double>(heap.uordblks + heap.hblkhd);
  };
  double short_time = 0, long_time = 0;
  const double short_heap = heap_after(20000, short_time), long_heap = heap_after(2000000, long_time);
  std::printf("20,000 requests: %.1f MB, %.2f us a request; 2,000,000: %.1f MB, %.2f us a request\n", short_heap / 1e6, short_time * 1e6, long_heap / 1e6, long_time * 1e6);
  BOOST_TEST(long_heap < short_heap + 20e6);   // percentiles stay exact up to 262,144 samples of each kind
  BOOST_TEST(long_time < 2 * short_time);
}
