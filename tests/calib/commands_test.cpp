// rackcast-calib from its command line, as far as it goes without a GPU.
#define BOOST_TEST_MODULE calib_commands
#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "tests/support/program.hpp"

using support::content_of;
using support::Outcome;
using support::TemporaryFolder;

namespace {

// Exit code, output and errors of `rackcast-calib arguments`.
Outcome calib(const std::string& arguments) {
  const TemporaryFolder place;
  const std::string line = std::string(RACKCAST_PROGRAM "-calib") + " " + arguments + " > " + place.path + "/out 2> " + place.path + "/err < /dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, content_of(place.path + "/out"), content_of(place.path + "/err")};
}

std::size_t lines(const std::string& text) { return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')); }

const std::string measured = RACKCAST_SOURCE_DIR "/scenarios/measurements/h200/";

}  // namespace

BOOST_AUTO_TEST_CASE(list_names_every_family_and_with_a_family_its_shapes) {
  const Outcome all = calib("list");
  BOOST_TEST(all.code == 0);
  BOOST_TEST(lines(all.out) >= 10u);
  const Outcome one = calib("list --family dense");
  BOOST_TEST(one.code == 0);
  BOOST_TEST(lines(one.out) > 20u);
  BOOST_TEST(one.out.find("GFLOP") != std::string::npos);
  BOOST_TEST(lines(calib("list --family dense --full").out) > lines(one.out));
  BOOST_TEST(lines(calib("list --family dense --sanitize").out) < lines(one.out));
  BOOST_TEST(calib("list --family densest").code == 2);
}

BOOST_AUTO_TEST_CASE(a_model_file_gives_shapes_of_its_own) {
  const std::string model = RACKCAST_SOURCE_DIR "/scenarios/models/deepseek-v4.1-flash.yaml";
  const Outcome eight = calib("list --model " + model + " --expert-ranks 8");
  BOOST_TEST(eight.code == 0, eight.err);
  BOOST_TEST(lines(eight.out) > 20u);
  BOOST_TEST(lines(calib("list --full --model " + model).out) > lines(eight.out));
  BOOST_TEST(calib("list --sanitize --model " + model).code == 2);
  BOOST_TEST(calib("list --model /nowhere.yaml").code == 2);
}

BOOST_AUTO_TEST_CASE(what_needs_a_gpu_says_so_and_writes_nothing) {
  if (std::filesystem::exists("/dev/nvidiactl")) return;  // there it would measure
  const TemporaryFolder place;
  for (const std::string verb : {"run", "check"}) {
    const Outcome refused = calib(verb + " --family dense" + (verb == "run" ? " --out " + place.path + "/x.jsonl" : ""));
    BOOST_TEST(refused.code == 3, verb + ": " + refused.err);
    BOOST_TEST(!refused.err.empty());
  }
  BOOST_TEST(!std::filesystem::exists(place.path + "/x.jsonl"));
}

BOOST_AUTO_TEST_CASE(options_that_contradict_each_other_are_refused) {
  for (const char* bad : {"list --quick --full --family dense", "run --budget 5", "run --budget 0s", "run --budget xs", "run --budget nans", "run --sample 2",
                          "run --sample nan", "run --gpus 0", "run --gpus 99", "run --limit -1", "run --limit nan", "frobnicate", "list --no-such"}) {
    const Outcome refused = calib(bad);
    BOOST_TEST(refused.code == 2, std::string(bad) + ": " + std::to_string(refused.code));
    BOOST_TEST(!refused.err.empty(), bad);
  }
}

BOOST_AUTO_TEST_CASE(compare_tells_whether_two_runs_agree) {
  const std::string first = measured + "quick-experts.jsonl", again = measured + "quick-experts-again.jsonl";
  const auto against = [&](const std::string& second, const std::string& more = "") { return calib("compare --first " + first + " --second " + second + more); };
  const Outcome same = against(first);
  BOOST_TEST(same.code == 0, same.err);
  BOOST_TEST(same.out.find("moe_gemm") != std::string::npos);
  BOOST_TEST(against(again, " --long 1 --short 1").code == 0);
  const Outcome strict = against(again, " --long 1e-9 --short 1e-9 --list 3");
  BOOST_TEST(strict.code == 1);
  BOOST_TEST(lines(strict.out) < lines(against(again, " --long 1e-9 --short 1e-9").out));

  const TemporaryFolder place;
  for (const auto& [name, text] : {std::pair<std::string, std::string>{"empty", ""}, {"packed", "\x1f\x8b packed"}, {"bad", "{\n"}})
    BOOST_TEST(against(place.file(name + ".jsonl", text)).code == 2, name);
  BOOST_TEST(against("/nowhere.jsonl").code == 2);
  BOOST_TEST(against(measured + "quick-attention.jsonl").code == 2);  // no point in common
}

BOOST_AUTO_TEST_CASE(help_and_version_are_there_for_every_verb) {
  BOOST_TEST(calib("--help").code == 0);
  BOOST_TEST(calib("--version").code == 0);
  for (const char* verb : {"list", "run", "check", "compare"}) BOOST_TEST(lines(calib(std::string(verb) + " --help").out) > 4u, verb);
  BOOST_TEST(calib("").code == 2);
}
