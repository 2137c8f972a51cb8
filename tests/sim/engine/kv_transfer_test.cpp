#define BOOST_TEST_MODULE kv_transfer
#include "sim/engine/kv_transfer.hpp"

#include <boost/test/unit_test.hpp>

#include "sim/engine/build.hpp"
#include "tests/support/small_rack.hpp"

using namespace rackcast;
using namespace rackcast::test;
namespace tt = boost::test_tools;

namespace {

const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});

KvTransferOptions options_of(const std::string& transport) {
  const Scenario scenario = read_scenario(std::string(RACKCAST_SOURCE_DIR "/scenarios/handover.yaml"), catalog, {"deployment.kv_transfer.transport=" + transport, "workload.concurrency=1"});
  return build_run(scenario, catalog).options.transfer;
}

// From the first post to the last byte, as the engine adds it up for one transfer that has its links for itself.
double whole_s(const TransportCost& cost, double descriptors, double bytes, double bytes_per_s) {
  return cost.posting_s(descriptors) + bytes / bytes_per_s + descriptors * cost.execute_s;
}

SimulationOptions pair_of_engines(const LinearSteps& prefill, const LinearSteps& decode) {
  SimulationOptions options;
  options.pools = {pool(EngineRole::prefill, 1, 1, prefill), pool(EngineRole::decode, 1, 2, decode)};
  options.transfer.bytes_per_token = 1;
  options.transfer.block_tokens = 100;
  options.topology.nvlink_bytes_per_s = 1e15;
  return options;
}

}  // namespace

// Posting times as published: vLLM PR #35264 (118 and 18,880 descriptors), vLLM #55434 (91K to 120K a rank).
BOOST_AUTO_TEST_CASE(posting_times_are_within_a_fifth_of_the_published_ones) {
  struct Published {
    const char* transport;
    double descriptors, seconds;
  };
  for (const Published& p : {Published{"unnamed", 118, 0.46e-3}, {"unnamed", 18880, 46e-3}, {"cuda_ipc", 112000, 456e-3}, {"ib", 112000, 24e-3}}) {
    const double posting_s = options_of(p.transport).nvlink.posting_s(p.descriptors);
    BOOST_TEST_MESSAGE(p.transport << " " << p.descriptors << " descriptors: " << posting_s * 1e3 << " ms, published " << p.seconds * 1e3);
    BOOST_TEST(posting_s == p.seconds, tt::tolerance(0.2));
  }
  for (const double descriptors : {91e3, 120e3}) BOOST_TEST(options_of("cuda_ipc").nvlink.posting_s(descriptors) == 4.07e-6 * descriptors, tt::tolerance(0.2));
}

// 4.9 GB of a rank in 112K pieces: 801 ms over cuda_ipc, 351 ms over four 400 Gb/s rails (vLLM #55434).
BOOST_AUTO_TEST_CASE(whole_transfers_are_within_three_tenths_of_the_published_ones) {
  BOOST_TEST(whole_s(options_of("cuda_ipc").nvlink, 112e3, 4.9e9, 779e9) == 0.801, tt::tolerance(0.3));
  BOOST_TEST(whole_s(options_of("ib").nic, 112e3, 4.9e9, 4 * 50e9) == 0.351, tt::tolerance(0.3));
}

BOOST_AUTO_TEST_CASE(pieces_of_a_prompt_are_its_blocks_or_its_runs) {
  KvTransferOptions o;
  o.block_tokens = 256;
  o.regions = 8;
  BOOST_TEST(KvTransfer(o, 1).descriptors(1025, 3) == 5.0 * 8);
  o.pieces = KvPieces::run;
  BOOST_TEST(KvTransfer(o, 1).descriptors(1025, 3) == 3.0 * 8);
  BOOST_TEST(KvTransfer(o, 1).descriptors(256, 3) == 1.0 * 8);
}

BOOST_AUTO_TEST_CASE(a_pull_that_posts_in_the_step_delays_the_step_of_every_rank) {
  const LinearSteps prefill(0.5, 0, 0), decode(0.1, 0, 0);
  for (const KvPosting posting : {KvPosting::step, KvPosting::thread}) {
    SimulationOptions options = pair_of_engines(prefill, decode);
    options.transfer.mode = KvTransferMode::pull;
    options.transfer.posting = posting;
    options.transfer.nvlink.post_s = 0.1;  // 10 descriptors: 1 s
    Scripted load({{0, 1000, 101}, {3, 1000, 2}});
    const Run run = simulate(options, load);
    BOOST_REQUIRE(run.records.rows.size() == 2U);
    // The first one's 100 steps; the second's posting holds one of them up.
    const RequestRecord& first = run.records.rows[1];
    BOOST_TEST(first.first_token_s == 1.5, tt::tolerance(1e-6));
    BOOST_TEST(first.finish_s - first.first_token_s == (posting == KvPosting::step ? 10.0 + 1.0 : 10.0), tt::tolerance(1e-6));
  }
}

BOOST_AUTO_TEST_CASE(a_decode_engine_that_computes_the_last_prompt_token_again_gives_the_first_token_with_its_first_step) {
  const LinearSteps prefill(0.5, 0, 0), decode(0.1, 0, 0);
  SimulationOptions options = pair_of_engines(prefill, decode);
  options.transfer.first_token = FirstToken::recomputed;
  Scripted load({{0, 1000, 5}});
  const Run run = simulate(options, load);
  BOOST_TEST(run.records.rows.at(0).first_token_s == 0.6, tt::tolerance(1e-6));
  BOOST_TEST(run.records.rows.at(0).finish_s == 0.5 + 5 * 0.1, tt::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(layers_leave_while_later_ones_are_computed) {
  const LinearSteps prefill(0, 1e-3, 0), decode(0.1, 0, 0);
  for (const KvTransferMode mode : {KvTransferMode::push, KvTransferMode::push_layerwise}) {
    SimulationOptions options = pair_of_engines(prefill, decode);
    options.transfer.mode = mode;
    options.transfer.groups = 4;
    options.topology.nvlink_bytes_per_s = 1000;  // 1000 tokens: 1 s, as long as they take to compute
    Scripted load({{0, 1000, 2}});
    const Run run = simulate(options, load);
    // push: 1 + 1 s; layerwise: the last quarter is left when the prompt is done.
    BOOST_TEST(run.records.rows.at(0).first_token_s == (mode == KvTransferMode::push ? 2.0 : 1.25), tt::tolerance(1e-6));
  }
}

BOOST_AUTO_TEST_CASE(what_the_cache_held_leaves_before_the_rest_is_computed) {
  const LinearSteps prefill(0.1, 1e-3, 0), decode(0.1, 0, 0);
  SimulationOptions options = pair_of_engines(prefill, decode);
  options.transfer.mode = KvTransferMode::push_layerwise;
  options.topology.nvlink_bytes_per_s = 1000;
  Scripted load({{0, 640, 2, 1, {{1, 10}}}, {10, 1280, 2, 1, {{1, 20}}}});
  const Run run = simulate(options, load);
  // Found 640 leave at 10 s and need 0.64 s; the new 640 are computed at 10.74 s and need as long.
  BOOST_TEST(run.records.rows.at(1).first_token_s == 10.74 + 0.64, tt::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(prompts_that_find_no_room_when_they_start_are_sent_when_they_are_computed) {
  const LinearSteps prefill(0.1, 0, 0), decode(0.01, 0, 0);
  SimulationOptions options = pair_of_engines(prefill, decode);
  options.transfer.mode = KvTransferMode::push_layerwise;
  options.pools[1].shape.limits.requests = 1;
  std::vector<Scripted::Ask> asks;
  for (int i = 0; i < 12; ++i) asks.push_back({0.01 * i, 300, 40});
  Scripted load(asks);
  const Run run = simulate(options, load);
  BOOST_TEST(run.records.rows.size() == 12U);
}
