#define BOOST_TEST_MODULE recorder
#include "sim/engine/recorder.hpp"

#include <boost/test/unit_test.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/base/csv.hpp"
#include "sim/engine/request.hpp"
#include "sim/engine/run.hpp"
#include "tests/support/program.hpp"

using namespace rackcast;
using Json = nlohmann::json;
namespace tt = boost::test_tools;

namespace {

const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});

Scenario scenario(const std::vector<std::string>& sets = {}) {
  return read_scenario(YamlSource{"test", "name: test\nrack: gb300-nvl72\nmodel: deepseek-v4.1-flash\nnetwork: fluid\n"
                                  "prices: {list: deepseek-2026-09}\ndeployment:\n  prefill: {engines: 2, dep: 4}\n  decode: {engines: 1, dep: 8}\n"
                                  "  speculation: {draft_tokens: 5, acceptance_length: 3.51}\n"
                                  "workload: {kind: closed_loop, concurrency: 64, input: 8K, output: 256, range_ratio: 0.8, duration: 20 s}\n"}, catalog, sets);
}

RunOptions options(const std::string& out_dir = {}, double series_interval_s = 0, const EventTraceOptions& trace = {}) {
  RunOptions o;
  o.out_dir = out_dir;
  o.series_interval_s = series_interval_s;
  o.event_trace = trace;
  return o;
}

EventTraceOptions trace_of(const std::string& path, double from_s, double to_s) {
  EventTraceOptions o;
  o.path = path;
  o.from_s = from_s;
  o.to_s = to_s;
  return o;
}

// What a viewer relies on, for every event: known phase, owner with a name, time, matching ends, slices that nest.
void check_every_event(const Json& trace) {
  std::set<std::int64_t> named;
  std::map<std::string, std::vector<std::string>> open;          // by category and id
  std::map<std::int64_t, std::vector<std::pair<double, double>>> slices;
  BOOST_REQUIRE(trace.at("traceEvents").is_array());
  for (const Json& event : trace["traceEvents"]) {
    BOOST_TEST_INFO(event.dump());
    const std::string phase = event.at("ph").get<std::string>(), name = event.at("name").get<std::string>();
    const auto process = event.at("pid").get<std::int64_t>();
    BOOST_REQUIRE(event.at("tid").is_number_unsigned());
    BOOST_REQUIRE(!name.empty());
    if (phase == "M") {
      if (name == "process_name") named.insert(process);
      BOOST_REQUIRE(event.at("args").is_object());
      continue;
    }
    BOOST_REQUIRE(named.contains(process));
    const double time = event.at("ts").get<double>();
    BOOST_REQUIRE(time >= 0);
    if (phase == "X") {
      const double duration = event.at("dur").get<double>();
      BOOST_REQUIRE(duration > 0);
      slices[process].push_back({time, time + duration});
    } else if (phase == "b" || phase == "e") {
      std::vector<std::string>& stack = open[event.at("cat").get<std::string>() + event.at("id").get<std::string>()];
      if (phase == "b") {
        stack.push_back(name);
      } else {
        BOOST_REQUIRE(!stack.empty());
        BOOST_REQUIRE_EQUAL(stack.back(), name);
        stack.pop_back();
      }
    } else if (phase == "C") {
      for (const auto& [series, value] : event.at("args").items()) BOOST_REQUIRE(value.is_number());
    } else {
      BOOST_REQUIRE_EQUAL(phase, "i");
      BOOST_REQUIRE(event.at("s") == "g" || event.at("s") == "p");
    }
  }
  for (const auto& [id, stack] : open) BOOST_TEST(stack.empty(), id << " is never closed");
  for (auto& [process, list] : slices) {
    std::sort(list.begin(), list.end());
    for (std::size_t i = 1; i < list.size(); ++i) BOOST_REQUIRE_GE(list[i].first, list[i - 1].second - 0.002);  // times have 1 ns
  }
}

std::size_t count(const Json& trace, const std::string& phase, const std::string& name) {
  std::size_t found = 0;
  for (const Json& event : trace["traceEvents"]) found += event["ph"] == phase && event["name"] == name;
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_iteration_that_reaches_beyond_a_sample_counts_where_it_is_worked_off) {
  const support::TemporaryFolder folder;
  const std::string path = folder.path + "/s.csv";
  TimeSeries series(path, {"e-0"});
  const std::vector<TopologyLink> links{{LinkKind::nvlink_out, 0, 0, 100.0}, {LinkKind::nvlink_out, 1, 1, 300.0}, {LinkKind::nvlink_out, 7, 2, 1.0}};
  RunLayout layout;
  layout.engines = {{.ranks = 2, .gpus = 2, .kv_tokens = 1000}};
  layout.links = links;
  series.started(layout);
  RunSample sample;
  sample.engines = {{.busy_s = 1.5, .waiting = 3, .running = 4, .kv_pinned_tokens = 100, .kv_used_tokens = 250, .rank_running = {4, 0}, .rank_kv_used_tokens = {250, 0}}};
  sample.time_s = 1;
  sample.link_bytes = {40, 0, 9};
  series.sampled(sample);
  sample.time_s = 2;
  sample.asked_tokens = 200, sample.hit_gpu_tokens = 150, sample.hit_host_tokens = 20;
  series.sampled(sample);
  series.close();
  const CsvTable t = CsvTable::read(path);
  BOOST_REQUIRE_EQUAL(t.rows(), 2u);
  BOOST_TEST(t.number(0, "e-0.utilisation").value() == 1);
  BOOST_TEST(t.number(1, "e-0.utilisation").value() == 0.5);
  BOOST_TEST(t.number(0, "e-0.waiting").value() == 3);
  BOOST_TEST(t.number(0, "e-0.kv_used").value() == 0.25);
  BOOST_TEST(t.number(0, "e-0.kv_pinned").value() == 0.1);
  BOOST_TEST(!t.number(0, "cache.hbm"));
  BOOST_TEST(t.number(1, "cache.hbm").value() == 0.75);
  BOOST_TEST(t.number(1, "cache.host").value() == 0.1);
  BOOST_TEST(t.number(0, "e-0.NVLink out").value() == 0.1);  // 40 of 400 bytes/s; GPU 7 is nobody's
  BOOST_TEST(t.number(1, "e-0.NVLink out").value() == 0);
  BOOST_TEST(t.number(0, "e-0.running.r0").value() == 4);
  BOOST_TEST(t.number(0, "e-0.kv_used.r0").value() == 0.5);
}

BOOST_AUTO_TEST_CASE(series_agree_with_the_result_and_change_nothing_of_it) {
  const support::TemporaryFolder folder;
  const auto plain = run_scenario(scenario(), catalog, options());
  const auto result = run_scenario(scenario(), catalog, options(folder.path, 0.25));
  BOOST_TEST(result["metrics"].dump() == plain["metrics"].dump());
  const CsvTable t = CsvTable::read(folder.path + "/time_series.csv");
  const double start = result["breakdown"]["counts"]["warmup_s"], end = start + result["breakdown"]["counts"]["window_s"].get<double>();
  for (const auto& engine : result["breakdown"]["engines"]) {
    const std::string name = engine["name"];
    double busy = 0, kv = 0;
    int samples = 0;
    for (std::size_t i = 0; i < t.rows(); ++i) {
      if (t.number(i, "time_s").value() < start + 1 || t.number(i, "time_s").value() > end) continue;
      busy += t.number(i, name + ".utilisation").value();
      kv = std::max(kv, t.number(i, name + ".kv_used").value());
      ++samples;
    }
    BOOST_REQUIRE(samples > 60);
    BOOST_TEST(busy / samples == engine["utilisation"].get<double>(), tt::tolerance(0.05));
    BOOST_TEST(kv > 0);
    BOOST_TEST(kv <= 1);
  }
  BOOST_TEST(result["breakdown"].contains("links"));
}

BOOST_AUTO_TEST_CASE(series_without_a_folder_are_refused) {
  BOOST_CHECK_THROW(run_scenario(scenario(), catalog, options({}, 1)), UserError);
}

BOOST_AUTO_TEST_CASE(every_event_of_a_trace_keeps_the_format_and_none_is_missing) {
  for (const char* fidelity : {"collapsed", "layered"}) {
    const support::TemporaryFolder folder;
    const std::string path = folder.path + "/t.json";
    const auto plain = run_scenario(scenario({std::string("fidelity=") + fidelity}), catalog, options());
    const auto result = run_scenario(scenario({std::string("fidelity=") + fidelity}), catalog, options({}, 0, trace_of(path, 0, 1e9)));
    BOOST_TEST(result["metrics"].dump() == plain["metrics"].dump());
    const Json trace = Json::parse(support::content_of(path));
    check_every_event(trace);
    const auto& counts = result["breakdown"]["counts"];
    BOOST_TEST(count(trace, "b", "request") >= counts["completed_measured"].get<std::size_t>());
    BOOST_TEST(count(trace, "b", "request") <= counts["arrivals"].get<std::size_t>());
    BOOST_TEST(count(trace, "X", "prefill step") + count(trace, "X", "decode step") >= counts["iterations"].get<std::size_t>() * 9 / 10);
    BOOST_TEST(count(trace, "b", "KV hand-over") > 0u);
    for (const char* phase : {"queue", "prompt", "hand-over", "answer"}) BOOST_TEST(count(trace, "b", phase) > 0u, phase);
  }
}

BOOST_AUTO_TEST_CASE(a_trace_holds_what_overlaps_its_window_and_stays_below_its_limit) {
  const support::TemporaryFolder folder;
  const std::string path = folder.path + "/t.json";
  const auto result = run_scenario(scenario(), catalog, options({}, 0, trace_of(path, 2, 3)));
  const double from_us = 1e6 * (result["breakdown"]["counts"]["warmup_s"].get<double>() + 2);
  const Json trace = Json::parse(support::content_of(path));
  check_every_event(trace);
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X") {
      BOOST_REQUIRE(event["ts"].get<double>() < from_us + 1e6);
      BOOST_REQUIRE(event["ts"].get<double>() + event["dur"].get<double>() >= from_us - 0.002);
    }
  EventTraceOptions limited = trace_of(path, 0, 1e9);
  limited.limit_bytes = 200'000;
  const auto cut = run_scenario(scenario(), catalog, options({}, 0, limited));
  const std::string text = support::content_of(path);
  BOOST_TEST(text.size() <= 200'000u);
  BOOST_TEST(text.size() > 150'000u);
  check_every_event(Json::parse(text));
  BOOST_TEST(cut["manifest"]["notes"].dump().find("reached its limit") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(notes_of_any_text_stay_text) {
  const support::TemporaryFolder folder;
  const std::string path = folder.path + "/t.json";
  EventTrace trace(trace_of(path, 0, 60), {"e-0"});
  RunLayout layout;
  layout.engines = {{}};
  trace.started(layout);
  trace.window_opened(5);
  trace.noted({.engine = 0, .start_s = 6, .end_s = 7, .name = "EPLB \"move\"", .detail = "a\\b\n\x01"});
  trace.noted({.start_s = 6, .end_s = 6, .name = "GPU 3 fails", .detail = ""});
  trace.close();
  const Json all = Json::parse(support::content_of(path));
  check_every_event(all);
  BOOST_TEST(count(all, "b", "EPLB \"move\"") == 1u);
  BOOST_TEST(count(all, "i", "GPU 3 fails") == 1u);
}

BOOST_AUTO_TEST_CASE(a_window_that_is_none_is_refused) {
  const support::TemporaryFolder folder;
  BOOST_CHECK_THROW(EventTrace(trace_of(folder.path + "/t", 5, 5), {}), UserError);
  BOOST_CHECK_THROW(EventTrace(trace_of(folder.path + "/t", -1, 5), {}), UserError);
}
