#define BOOST_TEST_MODULE recorder
#include "sim/engine/recorder.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
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
class EventChecker {
 public:
  void see(const Json& event) {
    BOOST_TEST_INFO(event.dump());
    ++events_;
    const std::string phase = event.at("ph").get<std::string>(), name = event.at("name").get<std::string>();
    const auto process = event.at("pid").get<std::int64_t>();
    BOOST_REQUIRE(event.at("tid").is_number_unsigned());
    BOOST_REQUIRE(!name.empty());
    if (phase == "M") {
      if (name == "process_name") named_.insert(process);
      BOOST_REQUIRE(event.at("args").is_object());
      return;
    }
    BOOST_REQUIRE(named_.contains(process));
    const double time = event.at("ts").get<double>();
    BOOST_REQUIRE(time >= 0);
    if (phase == "X") {
      const double duration = event.at("dur").get<double>();
      BOOST_REQUIRE(duration > 0);
      slices_[process].push_back({time, time + duration});
    } else if (phase == "b" || phase == "e") {
      std::vector<std::string>& stack = open_[event.at("cat").get<std::string>() + event.at("id").get<std::string>()];
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

  void finish() {
    for (const auto& [id, stack] : open_) BOOST_TEST(stack.empty(), id << " is never closed");
    for (auto& [process, list] : slices_) {
      std::sort(list.begin(), list.end());
      for (std::size_t i = 1; i < list.size(); ++i) BOOST_REQUIRE_GE(list[i].first, list[i - 1].second - 0.002);  // times have 1 ns
    }
  }
  std::size_t events() const { return events_; }

 private:
  std::set<std::int64_t> named_;
  std::map<std::string, std::vector<std::string>> open_;          // by category and id
  std::map<std::int64_t, std::vector<std::pair<double, double>>> slices_;
  std::size_t events_ = 0;
};

void check_every_event(const Json& trace) {
  EventChecker checker;
  BOOST_REQUIRE(trace.at("traceEvents").is_array());
  for (const Json& event : trace["traceEvents"]) checker.see(event);
  checker.finish();
}

std::size_t count(const Json& trace, const std::string& phase, const std::string& name) {
  std::size_t found = 0;
  for (const Json& event : trace["traceEvents"]) found += event["ph"] == phase && event["name"] == name;
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_sample_shows_what_its_interval_added_and_how_things_stand) {
  const support::TemporaryFolder folder;
  const std::string path = folder.path + "/s.csv";
  TimeSeries series(path, {"e-0"});
  const std::vector<TopologyLink> links{{LinkKind::nvlink_out, 0, 0, 100.0}, {LinkKind::nvlink_out, 1, 1, 300.0}, {LinkKind::nvlink_out, 7, 2, 1.0}};
  RunLayout layout;
  layout.engines = {{.ranks = 2, .gpus = 2, .kv_tokens = 1000, .experts = true}};
  layout.links = links;
  series.started(layout);
  RunSample sample;
  sample.engines = {{.busy_s = 1, .waiting = 3, .running = 4, .kv_pinned_tokens = 100, .kv_used_tokens = 250, .rank_running = {4, 0}, .rank_kv_used_tokens = {250, 0},
                     .rank_expert_load = {1.5, 0.5}, .experts_moved = 7}};
  sample.time_s = 1;
  sample.link_bytes = {40, 0, 9};
  series.sampled(sample);
  sample.time_s = 2;
  sample.engines[0].busy_s = 1.5;
  sample.engines[0].experts_moved = 9;
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
  BOOST_TEST(t.number(0, "e-0.experts_moved").value() == 7);
  BOOST_TEST(t.number(1, "e-0.experts_moved").value() == 2);
  BOOST_TEST(t.number(0, "e-0.expert_load.r0").value() == 1.5);
  BOOST_TEST(t.number(0, "e-0.expert_load.r1").value() == 0.5);
}

BOOST_AUTO_TEST_CASE(series_of_uneven_experts_show_ranks_that_even_out_when_experts_move_and_a_trace_when_they_did) {
  const support::TemporaryFolder folder;
  const std::string path = folder.path + "/t.json";
  const auto result = run_scenario(scenario({"workload.experts.skew=zipf", "workload.experts.exponent=1", "deployment.eplb.policy=periodic_async", "deployment.eplb.redundant_experts=32",
                         "deployment.eplb.draft_redundant_experts=8", "deployment.eplb.window=200", "deployment.eplb.interval=800"}), catalog, options(folder.path, 0.25, trace_of(path, 0, 1e9)));
  const Json trace = Json::parse(support::content_of(path));
  check_every_event(trace);
  for (const auto& pool : result["breakdown"]["pools"])
    if (pool["name"] == "decode")
      BOOST_TEST(count(trace, "b", "experts rearranged in the background") >= pool["experts"]["main"]["rearrangements"].get<std::size_t>() - 1);
  const CsvTable t = CsvTable::read(folder.path + "/time_series.csv");
  const auto busiest = [&](std::size_t row) {
    double most = 0, sum = 0;
    for (int r = 0; r < 8; ++r) {
      const double load = t.number(row, "decode-0.expert_load.r" + std::to_string(r)).value();
      most = std::max(most, load);
      sum += load;
    }
    BOOST_TEST(sum == 8, tt::tolerance(1e-4));
    return most;
  };
  double moved = 0;
  for (std::size_t i = 0; i < t.rows(); ++i) moved += t.number(i, "decode-0.experts_moved").value();
  BOOST_TEST(moved > 0);
  BOOST_TEST(busiest(0) - 1 > 2 * (busiest(t.rows() - 1) - 1));
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

namespace {

bool unfinished(const Json& event) { return event["ph"] == "b" && event["name"] == "request" && !event["args"]["finished"].get<bool>(); }

}  // namespace

// The window of 6 s ends while most requests are under way, and what is left 30 s later is cut off.
BOOST_AUTO_TEST_CASE(requests_that_the_runs_end_cuts_off_are_in_the_trace) {
  const support::TemporaryFolder folder;
  const std::string path = folder.path + "/t.json";
  const auto result = run_scenario(scenario({"workload.duration=6 s", "workload.output=100K", "workload.range_ratio=1"}), catalog, options({}, 0, trace_of(path, 0, 1e9)));
  const Json trace = Json::parse(support::content_of(path));
  check_every_event(trace);
  const auto& counts = result["breakdown"]["counts"];
  std::size_t cut = 0;
  for (const Json& event : trace["traceEvents"]) cut += unfinished(event);
  BOOST_TEST(cut > 0u);
  BOOST_TEST(cut == counts["unfinished_measured"].get<std::size_t>());
}

BOOST_AUTO_TEST_CASE(failures_and_what_ends_them_are_in_the_trace_of_their_engine) {
  const support::TemporaryFolder folder;
  const std::string path = folder.path + "/t.json";
  const std::string text = "name: test\nrack: gb300-nvl72\nmodel: deepseek-v4.1-flash\nnetwork: fluid\n"
                           "prices: {list: deepseek-2026-09}\ndeployment:\n  prefill: {engines: 2, dep: 4}\n  decode: {engines: 2, dep: 8}\n"
                           "workload: {kind: closed_loop, concurrency: 64, input: 8K, output: 256, range_ratio: 0.8, duration: 40 s}\n"
                           "failures:\n  detection: 1 s\n  restart: 5 s\n  reload_bandwidth: 1000 GB/s\n  events:\n"
                           "    - {kind: engine, pool: decode, engine: 1, at: 5 s}\n    - {kind: straggler, pool: prefill, engine: 1, gpu: 2, at: 8 s, lasts: 3 s, share: 0.3}\n";
  run_scenario(read_scenario(YamlSource{"test", text}, catalog, {}), catalog, options({}, 0, trace_of(path, 0, 1e9)));
  const Json trace = Json::parse(support::content_of(path));
  check_every_event(trace);
  for (const char* name : {"engine: failure", "engine: over", "straggler: failure", "straggler: over"}) BOOST_TEST(count(trace, "i", name) == 1u, name);
  std::map<std::string, double> at_us;
  std::set<std::int64_t> processes;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "i") {
      at_us[event["name"].get<std::string>()] = event["ts"].get<double>();
      processes.insert(event["pid"].get<std::int64_t>());
    }
  BOOST_TEST(processes.size() == 2u);
  BOOST_TEST(at_us["straggler: over"] - at_us["straggler: failure"] == 3e6, tt::tolerance(1e-6));
  BOOST_TEST(at_us["straggler: failure"] - at_us["engine: failure"] == 3e6, tt::tolerance(1e-6));
  BOOST_TEST(at_us["engine: over"] - at_us["engine: failure"] > 6e6);
}

// One event a line, so that the file need not be in memory as a whole.
BOOST_AUTO_TEST_CASE(a_minute_of_a_standard_run_keeps_the_format_below_100_MB) {
  const support::TemporaryFolder folder;
  const std::string path = folder.path + "/t.json";
  const Scenario standard = read_scenario(std::string(RACKCAST_SOURCE_DIR) + "/scenarios/standard.yaml", catalog, {"workload.duration=60 s", "workload.trace=generated-v1.0"});
  const auto result = run_scenario(standard, catalog, options({}, 0, trace_of(path, 0, 60)));
  BOOST_TEST(std::filesystem::file_size(path) < 100'000'000u);
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  BOOST_TEST(line.ends_with("\"traceEvents\":["));
  EventChecker checker;
  while (std::getline(file, line) && line.starts_with("{")) {
    if (line.ends_with(",")) line.pop_back();
    checker.see(Json::parse(line));
  }
  BOOST_TEST(line.starts_with("]"));
  checker.finish();
  BOOST_TEST(checker.events() > 100'000u);
  BOOST_TEST(result["manifest"]["notes"].dump().find("reached its limit") == std::string::npos);
  BOOST_TEST_MESSAGE(checker.events() << " events, " << std::filesystem::file_size(path) << " bytes");
}
