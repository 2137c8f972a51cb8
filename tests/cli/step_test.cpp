// The contract of `rackcast step`: JSON keys, groups that sum, exit codes of bad input.
#define BOOST_TEST_MODULE step
#include <boost/test/unit_test.hpp>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace {

struct Ran {
  int code = 0;
  std::string out;
};

Ran step(const std::string& arguments, const std::string& streams = "2>/dev/null") {
  const std::string command = std::string(RACKCAST_PROGRAM) + " step --model deepseek-v4.1-flash --gpu gb300 " + arguments + " " + streams;
  FILE* pipe = popen(command.c_str(), "r");
  BOOST_REQUIRE(pipe);
  Ran ran;
  std::array<char, 4096> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) ran.out.append(buffer.data(), n);
  ran.code = WEXITSTATUS(pclose(pipe));
  return ran;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_step_says_how_its_experts_are_divided) {
  const auto divided = [](const std::string& arguments) { return nlohmann::json::parse(step(arguments + " --case '4*1@8K' --json").out).at("experts").get<std::string>(); };
  BOOST_CHECK_EQUAL(divided("--dep 8"), "expert_parallel");
  BOOST_CHECK_EQUAL(divided("--tp 8"), "tensor_parallel");
  BOOST_CHECK_EQUAL(divided("--tp 8 --experts expert_parallel"), "expert_parallel");
  BOOST_CHECK(step("--dep 8 --experts tensor_parallel --case '4*1@8K'").out.find("DEP8 with experts cut") != std::string::npos);
  BOOST_CHECK(step("--tp 8 --case '4*1@8K'").out.find("TP8,") != std::string::npos);
  BOOST_CHECK_EQUAL(step("--dep 8 --experts slices --case '4*1@8K'").code, 2);
}

BOOST_AUTO_TEST_CASE(json_has_the_promised_keys_and_its_groups_and_operators_sum) {
  const Ran ran = step("--dep 32 --case '16*6@128K:5' --json");
  BOOST_REQUIRE_EQUAL(ran.code, 0);
  const auto json = nlohmann::json::parse(ran.out);
  const auto& groups = json.at("groups");
  double sum = 0;
  for (const char* name : {"attention_s", "moe_s", "other_s", "head_s", "draft_s", "host_s"}) sum += groups.at(name).get<double>();
  const double total = json.at("total_s");
  BOOST_CHECK_CLOSE(sum, total, 1e-9);
  BOOST_CHECK_CLOSE(json.at("main_s").get<double>(), total - groups.at("draft_s").get<double>() - groups.at("host_s").get<double>(), 1e-9);
  BOOST_CHECK_EQUAL(json.at("tokens_per_rank").get<double>(), 96);
  double operators = 0;
  for (const auto& op : json.at("operators")) {
    operators += op.at("time_s").get<double>();
    for (const char* key : {"name", "layer_count", "shape", "flops", "bytes", "basis"}) BOOST_CHECK(op.contains(key));
  }
  BOOST_CHECK_CLOSE(operators, total, 1e-9);
  BOOST_CHECK_GT(groups.at("draft_s").get<double>(), 0);
}

BOOST_AUTO_TEST_CASE(without_drafted_tokens_there_is_no_draft_time) {
  const auto json = nlohmann::json::parse(step("--dep 32 --case '16*6@128K' --json").out);
  BOOST_CHECK_EQUAL(json.at("groups").at("draft_s").get<double>(), 0);
}

BOOST_AUTO_TEST_CASE(experts_that_do_not_divide_are_padded_and_a_note_says_so) {
  BOOST_TEST(step("--dep 20 --case '16*1@8K'", "2>&1 >/dev/null").out ==
             "note: 384 experts and 0 redundant ones do not divide by 20 ranks: 16 redundant ones fill 20 slots a rank\n");
  BOOST_TEST(step("--dep 32 --case '16*1@8K'", "2>&1 >/dev/null").out.empty());
}

BOOST_AUTO_TEST_CASE(bad_input_exits_with_2) {
  for (const char* arguments : {"--case 1@8K", "--dep 4 --tp 4 --case 1@8K", "--dep 4 --case 8@4", "--dep 4 --case 1@2M",
                                "--dep 4 --case 1@8K:9", "--dep 4", "--dep 4 --case 1@8K --cost nothing", "--dep 4 --case 1 --eplb x", "--dep 2147483647 --case 1", "--dep 4 --case 1 --phase 2", "--dep 4 --case 1 --skew zipf",
                                "--dep 4 --case 1 --nvlink-domain -1", "--dep 4 --case 1 --redundant-experts 2147483647"})
    BOOST_CHECK_MESSAGE(step(arguments).code == 2, arguments);
}
