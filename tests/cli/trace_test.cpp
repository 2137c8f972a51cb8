// The contract of `rackcast trace`: JSON keys, exit codes of bad input, convert and generate.
#define BOOST_TEST_MODULE trace
#include <boost/test/unit_test.hpp>
#include <unistd.h>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace {

struct Ran {
  int code = 0;
  std::string out;
};

Ran trace(const std::string& arguments) {
  const std::string command = std::string(RACKCAST_PROGRAM) + " trace " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  BOOST_REQUIRE(pipe);
  Ran ran;
  std::array<char, 4096> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) ran.out.append(buffer.data(), n);
  ran.code = WEXITSTATUS(pclose(pipe));
  return ran;
}

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + name)).string();
}

}  // namespace

BOOST_AUTO_TEST_CASE(stats_has_the_promised_keys) {
  const Ran ran = trace("stats generated-v1.0 --json");
  BOOST_REQUIRE_EQUAL(ran.code, 0);
  const auto json = nlohmann::json::parse(ran.out);
  for (const char* key : {"sessions", "requests", "subagent_groups", "input_tokens", "output_tokens", "input_p50", "input_p90", "input_p99",
                          "output_p50", "output_p90", "new_tokens_p50", "gap_p50_s", "hit_ideal"})
    BOOST_TEST(json.at(key).is_number(), key);
  BOOST_TEST(json.at("sessions") == 393);
  // Printed beside it: what a lane asks of a server without latency, above the recorded sessions' 3 to 4 thousand.
  BOOST_TEST(json.at("lane_demand").at("tokens_per_s_lane").get<double>() > 6000);
}

BOOST_AUTO_TEST_CASE(convert_keeps_the_statistics) {
  const std::string file = temporary("sessions.jsonl.gz");
  BOOST_TEST(trace("convert generated-v1.0:2 --out " + file).code == 0);
  const auto a = nlohmann::json::parse(trace("stats generated-v1.0:2 --json").out), b = nlohmann::json::parse(trace("stats " + file + " --json").out);
  std::filesystem::remove(file);
  for (const char* key : {"requests", "input_tokens", "output_tokens", "hit_ideal", "hit_previous", "gap_p50_s", "distributions", "streams", "lane_demand"})
    BOOST_TEST(a.at(key) == b.at(key), key);
}

BOOST_AUTO_TEST_CASE(generate_prints_target_against_generated) {
  const auto json = nlohmann::json::parse(trace("generate --seed 3 --json").out);
  BOOST_TEST(json.at("rows").size() > 40u);
  BOOST_TEST(json.at("rows").at(0).at("target") == 393);
}

BOOST_AUTO_TEST_CASE(convert_does_not_write_over_what_it_reads) {
  const std::string file = temporary("kept.json"), text = R"({"id":"a","block_size":64,"requests":[{"t":0,"in":64,"out":1}]})";
  std::ofstream(file) << text;
  BOOST_TEST(trace("convert " + file + " --out " + file).code == 2);
  std::string kept;
  std::getline(std::ifstream(file), kept);
  BOOST_TEST(kept == text);
  std::filesystem::remove(file);
}

BOOST_AUTO_TEST_CASE(bad_input_is_exit_2_with_file_line_and_key) {
  const std::string file = temporary("bad.json");
  std::ofstream(file) << "{\"block_size\": 64,\n \"requests\": [{\"t\": 0, \"in\": \"x\"}]}";
  const Ran ran = trace("stats " + file);
  std::filesystem::remove(file);
  BOOST_TEST(ran.code == 2);
  BOOST_TEST(ran.out.find(file + ":2:30: requests[0].in: expected a number") != std::string::npos, ran.out);
  BOOST_TEST(trace("stats /nowhere.json").code == 2);
  BOOST_TEST(trace("stats").code == 2);
  BOOST_TEST(trace("generate --seed -3").code == 2);
}
