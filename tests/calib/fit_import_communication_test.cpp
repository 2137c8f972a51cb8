// What the fitter takes from measurements between GPUs, and what it refuses.
#define BOOST_TEST_MODULE fit_import_communication
#include <boost/test/unit_test.hpp>
#include <unistd.h>

#include <filesystem>

#include "calib/fit_import.hpp"
#include "calib/measurement.hpp"

using namespace rackcast;
using namespace rackcast::calib;
namespace fs = std::filesystem;

namespace {

struct TemporaryFile {
  std::string path = (fs::temp_directory_path() / ("fit_import_communication_" + std::to_string(getpid()) + ".jsonl")).string();
  TemporaryFile() { fs::remove(path); }
  ~TemporaryFile() { fs::remove(path); }
};

Measurement dispatch(const char* path, const char* transport, int tokens) {
  Measurement m;
  m.op = "all_to_all";
  m.implementation = "portable";
  m.math = "none";
  m.shape.set("part", "dispatch").set("path", path).set("ranks", 2).set("tokens", tokens).set("ctas", 0);
  m.work.bytes_link = 1e6;
  m.transport = transport;
  m.mode = "chain";
  m.time_us = {20, 12.5, 0.1, 12, 13, 11.9};
  m.ok = true;
  return m;
}

}  // namespace

BOOST_AUTO_TEST_CASE(loopback_rows_are_refused_as_costs_of_nvlink) {
  const TemporaryFile file;
  {
    MeasurementWriter writer(file.path);
    MeasurementHeader header;
    header.run_id = "r1";
    header.gpu = "NVIDIA H200";
    header.ranks = 2;
    writer.append(header);
    writer.append(dispatch("lsa", "nvlink", 1));
    writer.append(dispatch("lsa", "loopback", 2));
    writer.append(dispatch("lsa", "pcie", 3));
    writer.append(dispatch("virtual", "loopback", 4));
    writer.append(dispatch("padded", "nvlink", 5));
  }
  const Imported imported = import_points(file.path);
  BOOST_REQUIRE_EQUAL(imported.points.size(), 1u);
  const FitPoint& point = imported.points[0];
  BOOST_TEST(point.gpu == "h200");
  BOOST_TEST(point.family == "a2a_dispatch");
  BOOST_TEST(point.form == "unique");
  BOOST_TEST(point.ranks == 2);
  BOOST_TEST(point.link_bytes == 1e6);
  BOOST_CHECK_CLOSE(point.time_s, 12.5e-6, 1e-9);
  BOOST_TEST((point.basis == Basis::measured));
  BOOST_TEST(imported.left_out.at("all_to_all: transport is loopback, not NVLink") == 2);
  BOOST_TEST(imported.left_out.at("all_to_all: transport is pcie, not NVLink") == 1);
}

BOOST_AUTO_TEST_CASE(the_committed_measurements_of_two_gpus_give_points_and_no_loopback) {
  const fs::path folder = fs::path(RACKCAST_SOURCE_DIR) / "scenarios/measurements/h200-x2";
  const Imported imported = import_points((folder / "threads.jsonl").string());
  int dispatches = 0;
  for (const FitPoint& point : imported.points) {
    dispatches += point.family == "a2a_dispatch" ? 1 : 0;
    BOOST_TEST((point.family == "kv_transfer" || point.ranks == 2));
  }
  BOOST_TEST(dispatches == 30);
}
