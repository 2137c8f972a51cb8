// rackcast fit with points of single matrices: what it prints, writes and keeps.
#define BOOST_TEST_MODULE fit_verb
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"

using nlohmann::json;
using support::shell;

namespace {

// Ten row counts of one matrix of 400 MB, which no L2 holds: 10% slower than 3.9 TB/s and 750 TFLOPS.
std::string table() {
  std::string text = "gpu,op,backend,kernel,dtype,kv_dtype,phase,tokens,batch,seq,past_kv,m,n,k,hidden,inter,topk,experts,heads,ep,gpus,bytes,distribution,latency_us,source\n";
  for (int rows = 16; rows <= 8192; rows *= 2) {
    const double us = 1.1 * (5 + std::max(2.0 * 20000 * 10000 / 3.9e6, 2.0 * rows * 20000 * 10000 / 750e6));
    text += fmt::format("h200,gemm,x,y,bfloat16,,,,,,,{},20000,10000,,,,,,,,,,{:.3f},a table\n", rows, us);
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(exact_points_are_written_beside_parameters_that_stay) {
  const support::TemporaryFolder folder;
  const std::string csv = folder.file("points.csv", table()), out = folder.path + "/mine.yaml";
  const support::Outcome outcome = shell("\"$RACKCAST\" fit " + csv + " --keep-parameters --out " + out);
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  BOOST_TEST(outcome.out.find("exact points") != std::string::npos, outcome.out);
  BOOST_TEST(outcome.out.find("written") != std::string::npos, outcome.out);
  const std::string costs = support::content_of(out);
  BOOST_TEST(costs.find("- outputs: 20000\n        inputs: 10000\n        rows: [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]") != std::string::npos, costs);
  BOOST_TEST(shell("\"$RACKCAST\" check " + out).code == 0);
  BOOST_TEST(costs.find("range:\n      points: 10\n      mean_error: ") != std::string::npos, costs);
  const support::Outcome step = shell("\"$RACKCAST\" step --model deepseek-v4.1-flash --gpu h200 --dep 8 --cost " + out + " --case '32*1@8K' --json");
  BOOST_REQUIRE_MESSAGE(step.code == 0, step.err);
  const json outside = json::parse(step.out)["outside_range"];  // its matrices are far smaller than the table's
  BOOST_TEST_REQUIRE(outside.size() >= 1u);
  BOOST_TEST(outside[0]["family"] == "dense_bf16");
  BOOST_TEST(outside[0]["share"].get<double>() > 0);
  BOOST_TEST(json::parse(step.out)["notes"][0].get<std::string>().find("outside the range of the cost file's points: ") != std::string::npos);
  const support::Outcome again = shell("\"$RACKCAST\" fit " + csv + " --keep-parameters --json --out " + out);
  BOOST_REQUIRE_MESSAGE(again.code == 0, again.err);
  const json exact = json::parse(again.out)["exact"][0];
  BOOST_TEST(exact["family"] == "dense_bf16");
  BOOST_TEST(exact["points"] == 10);
  BOOST_TEST(exact["left_out_in_turn"] == 8);
  BOOST_TEST(exact["interpolated_error"].get<double>() < exact["form_error"].get<double>());
  BOOST_TEST(exact["written"] == true);
}

BOOST_AUTO_TEST_CASE(a_curve_that_cannot_be_is_refused_with_its_line) {
  const support::TemporaryFolder folder;
  const std::string file = folder.file("mine.yaml", "name: mine\ngpu: h200\nfamilies:\n  dense_fp8:\n    exact:\n      - {outputs: 8, inputs: 16, rows: [2, 1], ratio: [1, 1], basis: measured, source: us}\n");
  const support::Outcome outcome = shell("\"$RACKCAST\" check " + file);
  BOOST_TEST(outcome.code == 2);
  BOOST_TEST(outcome.err.find("mine.yaml:6:") != std::string::npos, outcome.err);
  BOOST_TEST(outcome.err.find("must rise") != std::string::npos, outcome.err);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_fitted_as_asked_is_refused_and_nothing_is_written) {
  const support::TemporaryFolder folder;
  const std::string csv = folder.file("points.csv", table()), out = folder.path + "/mine.yaml", own = folder.file("own.yaml", support::content_of(RACKCAST_SOURCE_DIR "/scenarios/costs/h200.yaml"));
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const support::Outcome outcome = shell("\"$RACKCAST\" fit " + csv + " " + arguments);
    BOOST_TEST(outcome.code == 2, arguments);
    BOOST_TEST(outcome.err.find(why) != std::string::npos, outcome.err);
  };
  refused("--only dense_bf16 --only nosuch --out " + out, "--only nosuch: no point is of it");
  refused("--prior b200 --out " + out, "--prior b200 is about GPU b200, the points are of h200");
  refused("--keep-parameters --prior " + folder.file("none.yaml", "name: none\ngpu: h200\nfamilies: {}\n") + " --out " + out, "nothing to keep or to write");
  refused("--prior " + own + " --out " + own, "own.yaml");
  BOOST_TEST(!std::filesystem::exists(out));
  BOOST_TEST(support::content_of(own) == support::content_of(RACKCAST_SOURCE_DIR "/scenarios/costs/h200.yaml"));
}

BOOST_AUTO_TEST_CASE(curves_of_shapes_that_the_points_do_not_hold_stay_with_parameters_that_stay) {
  const support::TemporaryFolder folder;
  const std::string csv = folder.file("points.csv", table()), out = folder.path + "/mine.yaml";
  BOOST_REQUIRE(shell("\"$RACKCAST\" fit " + csv + " --keep-parameters --out " + out).code == 0);
  const auto curves = [](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = text.find("- outputs: "); at != std::string::npos; at = text.find("- outputs: ", at + 1)) ++count;
    return count;
  };
  BOOST_TEST(curves(support::content_of(out)) == curves(support::content_of(RACKCAST_SOURCE_DIR "/scenarios/costs/h200.yaml")) + 1);
}
