#define BOOST_TEST_MODULE write_weka
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <unistd.h>
#include <cmath>
#include <filesystem>

#include "sim/base/error.hpp"
#include "sim/trace/generate.hpp"
#include "sim/trace/read.hpp"
#include "sim/trace/write_weka.hpp"
#include "tests/support/recorded_data.hpp"

using namespace rackcast;

namespace {

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void check_round_trip(const Trace& trace, const std::string& name) {
  const std::string path = (std::filesystem::temp_directory_path() / fmt::format("rackcast-{}-{}", ::getpid(), name)).string();
  write_weka(trace, path);
  const Trace back = read_trace({path});
  std::filesystem::remove(path);
  BOOST_REQUIRE(back.sessions.size() == trace.sessions.size());
  BOOST_REQUIRE(back.requests.size() == trace.requests.size());
  BOOST_REQUIRE(back.groups.size() == trace.groups.size());
  BOOST_REQUIRE(back.runs.size() == trace.runs.size());
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const TraceRequest &a = trace.requests[i], &b = back.requests[i];
    BOOST_REQUIRE(std::abs(a.start_s - b.start_s) < 1e-6);  // group times are sums of two recorded numbers
    BOOST_REQUIRE(same(a.api_time_s, b.api_time_s));
    BOOST_REQUIRE(same(a.think_time_s, b.think_time_s));
    BOOST_REQUIRE(a.input_tokens == b.input_tokens);
    BOOST_REQUIRE(a.output_tokens == b.output_tokens);
    BOOST_REQUIRE(a.group == b.group);
    BOOST_REQUIRE(trace.models[a.model] == back.models[b.model]);
  }
  for (std::size_t i = 0; i < trace.runs.size(); ++i)
    BOOST_REQUIRE((trace.runs[i].first == back.runs[i].first && trace.runs[i].count == back.runs[i].count));
  for (std::size_t i = 0; i < trace.sessions.size(); ++i) BOOST_REQUIRE(trace.sessions[i].id == back.sessions[i].id);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_generated_load_reads_back_the_same) { check_round_trip(generate_trace(agentx_v1_shape(), 3), "a.jsonl.gz"); }

BOOST_AUTO_TEST_CASE(the_recorded_sessions_read_back_the_same) {
  const auto data = test_support::recorded_data("traces/kv-cache-tester/weka_rle.jsonl.gz");
  if (data) check_round_trip(read_trace({*data}), "b.jsonl");
}

BOOST_AUTO_TEST_CASE(shared_block_ids_are_refused) {
  const Trace trace = read_trace_text("m", R"({"timestamp":0,"input_length":512,"output_length":1,"hash_ids":[1]})");
  BOOST_CHECK_THROW(write_weka(trace, "/dev/null"), UserError);
}
