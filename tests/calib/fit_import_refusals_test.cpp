// Bad rows of others' measurements are refused with their file and line, before they become a fit.
#define BOOST_TEST_MODULE fit_import_refusals
#include <boost/test/unit_test.hpp>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "calib/fit_import.hpp"
#include "sim/base/error.hpp"

using namespace rackcast;
using namespace rackcast::calib;

namespace {

// What is wrong with the second line of a file of this header.
std::string refusal(const std::string& header, const std::string& row) {
  const std::string path = (std::filesystem::temp_directory_path() / ("rackcast_refusals_" + std::to_string(getpid()) + ".csv")).string();
  std::ofstream(path) << header << "\n" << row << "\n";
  std::string found;
  try {
    import_points(path);
  } catch (const UserError& error) {
    BOOST_TEST(error.problems().front().line == 2);
    found = error.problems().front().key;
  }
  std::filesystem::remove(path);
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(whole_forwards_name_the_cell_that_is_wrong) {
  const std::string header = "gpu,model,dep,tp,case,latency_ms";
  BOOST_TEST(refusal(header, "gb300,deepseek-v4-flash,4,,16x1@8K,9") == "case");
  BOOST_TEST(refusal(header, "gb300,deepseek-v4-flash,4.5,,16*1@8K,9") == "dep");
  BOOST_TEST(refusal(header, "gb300,deepseek-v4-flash,4,-2,16*1@8K,9") == "dep");
  BOOST_TEST(refusal(header, "gb300,deepseek-v4-flash,4,,16*1@8K,abc") == "latency_ms");
  BOOST_TEST(refusal(header, "gb300,deepseek-v4-flash,4,,16*1@8K,9") == "");
}

BOOST_AUTO_TEST_CASE(exchange_tables_name_the_cell_that_is_wrong) {
  const std::string header = "gpu,part,mode,ranks,tokens,hidden,topk,experts,bytes_per_value,latency_us";
  BOOST_TEST(refusal(header, "gb200,dispatch,unique,8,32,7168,300,256,1,30") == "topk");
  BOOST_TEST(refusal(header, "gb200,dispatch,unique,1,32,7168,8,256,1,30") == "ranks");
  BOOST_TEST(refusal(header, "gb200,dispatch,unique,512,32,7168,8,256,1,30") == "ranks");
  BOOST_TEST(refusal(header, "gb200,dispatch,unique,8,0,7168,8,256,1,30") == "tokens");
  BOOST_TEST(refusal(header, "gb200,dispatch,unique,8,32,7168,8,256,1,30") == "");
}

BOOST_AUTO_TEST_CASE(step_logs_name_the_cell_that_is_wrong) {
  const std::string header = "gpu,requests,gpu_us,wall_us";
  BOOST_TEST(refusal(header, "h200,-4,8000,8500") == "requests");
  BOOST_TEST(refusal(header, "h200,4,-8000,8500") == "gpu_us");
  BOOST_TEST(refusal(header, "h200,4,8000,8500") == "");
}

BOOST_AUTO_TEST_CASE(an_older_nccl_tests_file_is_known_by_its_name_alone) {
  const std::string folder = (std::filesystem::temp_directory_path() / ("rackcast_refusals_" + std::to_string(getpid()))).string();
  std::filesystem::create_directory(folder);
  const std::string text = "# nThread 1 nGpus 2\n#  Rank  0 Group  0 Pid  9 on n device  0 [0x19] NVIDIA H200\n#  Rank  1 Group  0 Pid  9 on n device  1 [0x20] NVIDIA H200\n"
                           "        1024           256     float     sum      -1    10.50    0.10    0.10      0\n";
  std::ofstream(folder + "/all_reduce.txt") << text;
  std::ofstream(folder + "/mystery.txt") << text;
  BOOST_TEST(import_points(folder + "/all_reduce.txt").points.size() == 1u);
  BOOST_CHECK_THROW(import_points(folder + "/mystery.txt"), UserError);
  BOOST_CHECK_THROW(import_points(folder), UserError);
  BOOST_CHECK_THROW(import_points(folder + "/absent.txt"), UserError);
  std::filesystem::remove_all(folder);
}
