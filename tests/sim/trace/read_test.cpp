#define BOOST_TEST_MODULE read
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <zlib.h>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "sim/base/error.hpp"
#include "sim/base/numpy_random.hpp"
#include "sim/trace/read.hpp"
#include "sim/trace/statistics.hpp"
#include "tests/support/recorded_data.hpp"

using namespace rackcast;

namespace {

std::string problem_of(const std::string& text) {
  try {
    read_trace_text("t.json", text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "read without a problem";
}

std::string session(const std::string& requests) { return R"({"id":"a","block_size":64,"requests":[)" + requests + "]}"; }

std::string group(double t, double duration_ms, std::vector<double> inner) {
  std::string requests;
  for (const double start : inner)
    requests += fmt::format(R"({}{{"t":{},"in":64,"out":1,"hash_ids":[9]}})", requests.empty() ? "" : ",", start);
  return fmt::format(R"({{"t":{},"type":"subagent","duration_ms":{},"requests":[{}]}})", t, duration_ms, requests);
}

const std::string main_request = R"({"t":0,"type":"n","model":"m","in":130,"out":0,"hash_ids":[1,2],"api_time":null},)";

}  // namespace

BOOST_AUTO_TEST_CASE(a_session_is_read_with_null_api_time_and_output_zero) {
  const Trace trace = read_trace_text("t", session(R"({"t":1.5,"type":"n","in":200,"out":0,"hash_ids":[1,2,7],"api_time":null,"ttft":{"x":[1]}})"));
  BOOST_REQUIRE(trace.requests.size() == 1u);
  BOOST_TEST(trace.requests[0].start_s == 1.5);
  BOOST_TEST(std::isnan(trace.requests[0].api_time_s));
  BOOST_TEST(trace.requests[0].output_tokens == 0u);
  BOOST_REQUIRE(trace.runs.size() == 2u);
  BOOST_TEST(trace.runs[0].count == 2u);
  BOOST_TEST(trace.runs[1].first == 7u);
}

BOOST_AUTO_TEST_CASE(ids_and_runs_of_ids_give_the_same_trace) {
  const Trace ids = read_trace_text("t", session(R"({"t":0,"in":320,"out":1,"hash_ids":[1,2,3,9,10]})"));
  const Trace runs = read_trace_text("t", session(R"({"t":0,"in":320,"out":1,"hash_runs":[[1,2],[3,1],[9,2]]})"));
  BOOST_REQUIRE(ids.runs.size() == runs.runs.size());
  for (std::size_t i = 0; i < ids.runs.size(); ++i) {
    BOOST_TEST(ids.runs[i].first == runs.runs[i].first);
    BOOST_TEST(ids.runs[i].count == runs.runs[i].count);
  }
}

BOOST_AUTO_TEST_CASE(group_times_from_the_groups_start_become_absolute) {
  const Trace trace = read_trace_text("t", session(main_request + group(100, 50000, {0, 20})));
  BOOST_TEST(trace.requests[1].start_s == 100);
  BOOST_TEST(trace.requests[2].start_s == 120);
}

BOOST_AUTO_TEST_CASE(absolute_group_times_stay) {
  const Trace trace = read_trace_text("t", session(main_request + group(1000, 50000, {1000, 1020})));
  BOOST_TEST(trace.requests[1].start_s == 1000);
  BOOST_TEST(trace.requests[2].start_s == 1020);
}

BOOST_AUTO_TEST_CASE(a_group_that_proves_nothing_follows_the_others) {
  const std::string unclear = group(1, 60000, {2, 3});
  const Trace relative = read_trace_text("t", session(main_request + unclear + "," + group(100, 50000, {0})));
  BOOST_TEST(relative.requests[1].start_s == 3);
  const Trace absolute = read_trace_text("t", session(main_request + unclear + "," + group(5000, 50000, {5001})));
  BOOST_TEST(absolute.requests[1].start_s == 2);
  const Trace alone = read_trace_text("t", session(main_request + unclear));
  BOOST_TEST(alone.requests[1].start_s == 2);
}

BOOST_AUTO_TEST_CASE(a_session_with_both_kinds_of_group_times_is_refused) {
  BOOST_TEST(problem_of(session(main_request + group(5000, 50000, {5001}) + "," + group(100, 50000, {0}))) ==
             "t.json: requests: session 'a' has subagent times both from the group's start and from the session's start");
}

BOOST_AUTO_TEST_CASE(problems_name_the_place_the_key_and_the_rule) {
  BOOST_TEST(problem_of("{\"id\":\"a\",\n \"requests\":[\n  {\"t\":0,\"in\":64,\"out\":-1}]}") ==
             "t.json:3:26: requests[0].out: -1 is not a whole number from 0");
  BOOST_TEST(problem_of("{\"requests\":[{\"in\":1,\"out\":1}]}") == "t.json:1:30: requests[0].t: start time is missing");
  BOOST_TEST(problem_of("{\"requests\":[{\"t\":0,\"in\":64,\"out\":1,\"hash_ids\":[1,2]}]}").find("2 blocks of 64 tokens are more than its 64 input tokens") != std::string::npos);
  BOOST_TEST(problem_of("{\"requests\":[{\"t\":1e400").find("not a finite number") != std::string::npos);
  BOOST_TEST(problem_of("{\"requests\":[{\"t\":0").find("the file ends here") != std::string::npos);
  BOOST_TEST(problem_of("{\"block_size\":64}x").find("needs the list of its requests") != std::string::npos);
  BOOST_TEST(problem_of("{\"requests\":[{\"t\":0,\"in\":64,\"out\":1,\"hash_ids\":[4294967295]}]}").find("is larger than") != std::string::npos);
  BOOST_TEST(problem_of("{\"requests\":[{\"t\":0,\"in\":64,\"out\":1,\"hash_runs\":[[4294967294,2]]}]}").find("does not fit 32 bits") != std::string::npos);
  BOOST_TEST(problem_of("hello") == "t.json:1:1: not a load file that we know (weka, mooncake, azure)");
  BOOST_TEST(problem_of("") == "t.json:1:1: the file is empty");
}

BOOST_AUTO_TEST_CASE(hostile_nesting_and_names_are_refused_before_they_cost_memory) {
  BOOST_TEST(problem_of(R"({"requests":[],"x":)" + std::string(100000, '[')).find("nested deeper than 64 levels") != std::string::npos);
  BOOST_TEST(problem_of(R"({"requests":[],"id":")" + std::string(100000, 'a')).find("string is longer than 4096 bytes") != std::string::npos);
  BOOST_CHECK_THROW(read_trace_text("t", session(main_request + main_request.substr(0, main_request.size() - 1)), {.requests = 1}), UserError);
}

BOOST_AUTO_TEST_CASE(damaged_files_are_read_or_refused_but_never_more) {
  const std::string whole[] = {session(main_request + group(100, 50000, {0, 20})),
                               "{\"timestamp\": 1500, \"input_length\": 1100, \"output_length\": 5, \"hash_ids\": [0, 1, 9]}\n",
                               "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-12-31 23:59:59.5000000,4808,10\n"};
  NumpyRandom random(1);
  std::size_t read = 0, refused = 0;
  for (int round = 0; round < 30000; ++round) {
    std::string text = whole[round % 3];
    for (std::uint64_t hits = 1 + random.below(3); hits > 0; --hits) {
      const std::size_t at = random.below(text.size());
      switch (random.below(4)) {
        case 0: text[at] = static_cast<char>(random.below(256)); break;
        case 1: text.erase(at, 1 + random.below(8)); break;
        case 2: text.insert(at, text.substr(random.below(text.size()), 1 + random.below(16))); break;
        default: text[at] = "[]{},:\"0-e."[random.below(11)]; break;
      }
      if (text.empty()) text = " ";
    }
    try {
      statistics_of(read_trace_text("t", text));
      ++read;
    } catch (const UserError&) {
      ++refused;
    }
  }
  BOOST_TEST(read > 100u);
  BOOST_TEST(refused > 10000u);
}

BOOST_AUTO_TEST_CASE(long_lists_of_ids_read_the_same_over_the_edges_of_the_buffer) {
  const auto path = (std::filesystem::temp_directory_path() / fmt::format("rackcast-ids-{}.json", ::getpid())).string();
  std::string ids, spaced;
  std::uint32_t blocks = 0;
  for (std::uint32_t id = 1; blocks < 200000; ++blocks, id += id % 1000 == 0 ? 7 : 1) {
    ids += fmt::format("{}{}", ids.empty() ? "" : ",", id);
    spaced += fmt::format("{}{}", spaced.empty() ? "" : ", ", id);
  }
  const auto text = [&](const std::string& list) { return session(fmt::format(R"({{"t":0,"in":{},"out":1,"hash_ids":[{}]}})", 64 * blocks, list)); };
  std::ofstream(path) << text(ids);
  const Trace file = read_trace({path}), memory = read_trace_text("t", text(spaced));
  std::filesystem::remove(path);
  BOOST_TEST(file.runs.size() > 100u);
  BOOST_TEST(std::equal(file.runs.begin(), file.runs.end(), memory.runs.begin(), memory.runs.end(),
                        [](const HashRun& p, const HashRun& q) { return p.first == q.first && p.count == q.count; }));
}

BOOST_AUTO_TEST_CASE(mooncake_rows_share_their_ids_and_lose_the_partial_block) {
  const Trace trace = read_trace_text("m.jsonl", "{\"timestamp\": 1500, \"input_length\": 1100, \"output_length\": 5, \"hash_ids\": [0, 1, 9]}\n"
                                                 "{\"timestamp\": 3000, \"input_length\": 1024, \"output_length\": 5, \"hash_ids\": [0, 4]}\n");
  BOOST_TEST(trace.block_ids_global);
  BOOST_TEST(trace.requests[0].start_s == 1.5);
  BOOST_TEST(trace.sessions[0].block_tokens == 512u);
  BOOST_TEST(trace.requests[0].runs_count == 1u);
  BOOST_TEST(statistics_of(trace).hit_ideal == 0.25);
}

BOOST_AUTO_TEST_CASE(arrivals_and_agent_sessions_are_not_one_load_in_either_order) {
  const auto folder = std::filesystem::temp_directory_path() / "rackcast-mixed-load";
  std::filesystem::create_directories(folder);
  const std::string sessions = (folder / "a.json").string(), arrivals = (folder / "b.jsonl").string();
  std::ofstream(sessions) << session(R"({"t":0,"in":64,"out":1,"hash_ids":[1]})");
  std::ofstream(arrivals) << R"({"timestamp":0,"input_length":600,"output_length":1,"hash_ids":[1]})";
  BOOST_CHECK_THROW(read_trace({sessions, arrivals}), UserError);
  BOOST_CHECK_THROW(read_trace({arrivals, sessions}), UserError);
  BOOST_TEST(read_trace({arrivals}).block_ids_global);
  std::filesystem::remove_all(folder);
}

BOOST_AUTO_TEST_CASE(agent_sessions_have_a_limit_so_that_a_small_packed_file_cannot_fill_the_memory) {
  const TraceLimits limits{.agent_sessions = 3, .agent_requests = 6};
  const auto sessions = [](int n, const std::string& requests) {
    std::string text;
    for (int i = 0; i < n; ++i) text += session(requests) + "\n";
    return text;
  };
  const std::string one = R"({"t":0,"in":64,"out":1,"hash_ids":[1]})", empty_group = R"({"t":0,"type":"subagent"})";
  BOOST_TEST(read_trace_text("t", sessions(3, one), limits).sessions.size() == 3U);
  BOOST_CHECK_THROW(read_trace_text("t", sessions(4, one), limits), UserError);
  BOOST_CHECK_THROW(read_trace_text("t", sessions(3, one + "," + one + "," + one), limits), UserError);
  BOOST_CHECK_THROW(read_trace_text("t", sessions(3, empty_group + "," + empty_group + "," + empty_group), limits), UserError);
}

BOOST_AUTO_TEST_CASE(azure_rows_count_from_the_first_one_across_midnight) {
  const Trace trace = read_trace_text("a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-12-31 23:59:59.5000000,4808,10\n2024-01-01 00:00:01.2500000,110,27\n");
  BOOST_TEST(trace.requests[1].start_s == 1.75);
  BOOST_TEST(trace.requests[1].input_tokens == 110u);
  BOOST_TEST(problem_of("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-31 23:59:59,1,1\n").find("t.json:2:24: TIMESTAMP: '2023-13-31 23:59:59' is not a time") == 0u);
  BOOST_TEST(problem_of("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-12-31 23:59:59,1\n").find("a row has three columns") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(gzip_reads_like_plain_and_damage_is_told) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("rackcast-read-{}", ::getpid());
  std::filesystem::create_directories(folder);
  const std::string text = session(main_request.substr(0, main_request.size() - 1));
  const std::string packed = (folder / "b.json.gz").string();
  gzFile file = gzopen(packed.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  std::ofstream(folder / "a.json") << text;
  const Trace both = read_trace({folder.string()});
  BOOST_TEST(both.sessions.size() == 2u);
  BOOST_TEST(both.requests[0].input_tokens == both.requests[1].input_tokens);
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 12);
  BOOST_CHECK_THROW(read_trace({packed}), UserError);
  BOOST_CHECK_THROW(read_trace({(folder / "none.json").string()}), UserError);
  std::filesystem::remove_all(folder);
}

BOOST_AUTO_TEST_CASE(the_recorded_sessions_have_their_published_numbers) {
  const auto data = test_support::recorded_data("traces/kv-cache-tester/weka_rle.jsonl.gz");
  if (!data) return;
  const TraceStatistics s = statistics_of(read_trace({*data}));
  BOOST_TEST(s.sessions == 710u);
  BOOST_TEST(s.requests == 49334u);
  BOOST_TEST(s.input_tokens == 6.037e9, boost::test_tools::tolerance(1e-3));
  BOOST_TEST(s.output_tokens == 21.7e6, boost::test_tools::tolerance(1e-3));
  BOOST_TEST(s.input.p50 == 103659);
  BOOST_TEST(s.output.p50 == 216);
  BOOST_TEST(s.new_tokens.p50 == 704);
  BOOST_TEST(std::abs(s.hit_ideal - 0.9634) < 0.0002);
  BOOST_TEST(s.gap_s.p50 == 9.7, boost::test_tools::tolerance(0.01));
  BOOST_TEST(s.subagent_groups == 63u);
}

BOOST_AUTO_TEST_CASE(original_files_and_their_run_length_form_are_the_same_trace) {
  const auto originals = test_support::recorded_data("traces/kv-cache-tester/raw");
  const auto lines = test_support::recorded_data("traces/kv-cache-tester/weka_rle.jsonl.gz");
  if (!originals || !lines) return;
  const Trace a = read_trace({*originals}), all = read_trace({*lines});
  BOOST_TEST(a.sessions.size() == 8u);
  for (const Session& session_a : a.sessions) {
    const auto same = std::find_if(all.sessions.begin(), all.sessions.end(), [&](const Session& b) { return b.id == session_a.id; });
    BOOST_REQUIRE(same != all.sessions.end());
    BOOST_REQUIRE(same->requests_count == session_a.requests_count);
    for (std::uint32_t i = 0; i < session_a.requests_count; ++i) {
      const TraceRequest& x = a.requests[session_a.requests_begin + i];
      const TraceRequest& y = all.requests[same->requests_begin + i];
      BOOST_REQUIRE(x.start_s == y.start_s);
      BOOST_REQUIRE(x.input_tokens == y.input_tokens);
      BOOST_REQUIRE(x.output_tokens == y.output_tokens);
      const auto runs_x = a.runs_of(x), runs_y = all.runs_of(y);
      BOOST_REQUIRE(std::equal(runs_x.begin(), runs_x.end(), runs_y.begin(), runs_y.end(),
                               [](const HashRun& p, const HashRun& q) { return p.first == q.first && p.count == q.count; }));
    }
  }
}
