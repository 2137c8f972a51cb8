#define BOOST_TEST_MODULE measurement
#include <boost/test/unit_test.hpp>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "calib/measurement.hpp"
#include "sim/base/error.hpp"

using namespace rackcast;
using namespace rackcast::calib;

namespace {

struct TemporaryFile {
  std::string path = (std::filesystem::temp_directory_path() / ("measurement_test_" + std::to_string(getpid()) + ".jsonl")).string();
  TemporaryFile() { std::filesystem::remove(path); }
  ~TemporaryFile() { std::filesystem::remove(path); }
  void append(const std::string& text) { std::ofstream(path, std::ios::app) << text; }
};

Measurement example(std::int64_t tokens) {
  Measurement m;
  m.op = "topk";
  m.implementation = "portable";
  m.fallback_from = "sm90";
  m.math = "none";
  m.shape.set("rows", tokens).set("scores", "ties");
  m.work = {1, 2, 3, 4, 5};
  m.launches = 12;
  m.sets = 3;
  m.time_us = {20, 9.5, 0.25, 9, 10, 8.75};
  m.clocks = Clocks{1980, 3201, 412.5, 51, 4};
  m.ok = true;
  m.rel_l2 = 0.001;
  return m;
}

MeasurementHeader header() {
  MeasurementHeader h;
  h.run_id = "r1";
  h.gpu = "NVIDIA H200";
  h.compute_capability = "9.0";
  h.sm_count = 132;
  h.seed = 7;
  return h;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_written_is_read_back_whole) {
  TemporaryFile file;
  {
    MeasurementWriter writer(file.path);
    writer.append(header());
    writer.append(example(1));
  }
  const MeasurementFile read = read_measurements(file.path);
  BOOST_REQUIRE(read.headers.size() == 1u && read.points.size() == 1u);
  BOOST_TEST(read.headers[0].gpu == "NVIDIA H200");
  BOOST_TEST(read.headers[0].seed == 7u);
  BOOST_TEST(to_json_line(read.points[0]) == to_json_line(example(1)));
  BOOST_TEST(read.points[0].key() == "topk rows=1 scores=ties cold graph pass=1");
}

BOOST_AUTO_TEST_CASE(a_killed_run_loses_only_its_cut_line_and_goes_on) {
  TemporaryFile file;
  {
    MeasurementWriter writer(file.path);
    writer.append(header());
    writer.append(example(1));
  }
  file.append(to_json_line(example(2)).substr(0, 40));
  {
    MeasurementWriter writer(file.path);
    BOOST_TEST(writer.has(example(1).key()));
    BOOST_TEST(!writer.has(example(2).key()));
    writer.append(example(2));
    BOOST_TEST(writer.has(example(2).key()));
  }
  BOOST_TEST(read_measurements(file.path).points.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_line_that_is_not_ours_is_named_with_its_place) {
  try {
    parse_measurements("\n{\"kind\":\"pint\"}\n", "x.jsonl");
    BOOST_FAIL("accepted");
  } catch (const UserError& error) {
    BOOST_TEST(error.problems().at(0).line == 2);
    BOOST_TEST(error.problems().at(0).file == "x.jsonl");
    BOOST_TEST(error.problems().at(0).rule.find("'pint' is neither header nor point") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_point_without_a_header_is_refused) {
  BOOST_CHECK_THROW(parse_measurements(to_json_line(example(1)) + "\n", "x"), UserError);
}

BOOST_AUTO_TEST_CASE(a_point_without_clocks_says_null) {
  Measurement m = example(1);
  m.clocks.reset();
  BOOST_TEST(to_json_line(m).find("\"clk\":null") != std::string::npos);
  const MeasurementFile read = parse_measurements(to_json_line(header()) + "\n" + to_json_line(m) + "\n", "x");
  BOOST_TEST(!read.points.at(0).clocks.has_value());
}
