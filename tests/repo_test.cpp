// The rules of the repository itself: which folder may include what.
#define BOOST_TEST_MODULE repo
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

// Folder -> folders whose headers it may include (besides itself).
const std::map<std::string, std::set<std::string>> allowed = {
    {"sim/base", {}},
    {"sim/trace", {"sim/base"}},
    {"sim/policy", {"sim/base"}},
    {"kernels", {"sim/base"}},
    {"sim/spec", {"sim/base", "sim/trace", "sim/policy"}},
    {"sim/cost", {"sim/base", "sim/trace", "sim/policy", "sim/spec"}},
    {"sim/engine", {"sim/base", "sim/trace", "sim/policy", "sim/spec", "sim/cost", "analysis"}},  // analysis: record structs and metrics
    {"analysis", {"sim/base"}},
    {"calib", {"sim/base", "sim/trace", "sim/policy", "sim/spec", "sim/cost", "kernels", "calib/gpu"}},
    {"calib/gpu", {"sim/base", "sim/spec", "sim/cost", "kernels", "calib"}},
    {"sim/cli", {"sim/base", "sim/trace", "sim/policy", "sim/spec", "sim/cost", "sim/engine", "analysis", "calib", "kernels"}},
};

// Outside header pattern -> paths (prefixes) that may include it.
const std::vector<std::pair<std::regex, std::vector<std::string>>> outside = {
    {std::regex("^yaml-cpp/"), {"sim/base/schema_yaml", "sim/base/yaml"}},
    {std::regex("^simgrid/"), {"sim/engine/"}},
    {std::regex("^Eigen/"), {"calib/fit", "sim/cost/fitted"}},
    {std::regex("^(cuda|nccl|cublas|nvml|cooperative_groups|mma)"), {"kernels/", "calib/gpu/"}},
    {std::regex("^CLI/"), {"sim/cli/", "calib/main.cpp"}},
    {std::regex("^sqlite3"), {"analysis/", "sim/cli/"}},
};

std::vector<fs::path> sources() {
  std::vector<fs::path> found;
  for (const char* top : {"sim", "kernels", "calib", "analysis"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(RACKCAST_SOURCE_DIR) / top)) {
      const std::string path = entry.path().string();
      if (path.find("node_modules") != std::string::npos) continue;
      if (std::regex_search(path, std::regex("\\.(cpp|hpp|cu|cuh)$"))) found.push_back(entry.path());
    }
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(includes_follow_the_layer_rule) {
  const std::regex include_line("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"]");
  for (const fs::path& path : sources()) {
    const std::string relative = fs::relative(path, RACKCAST_SOURCE_DIR).string();
    const std::string folder = fs::path(relative).parent_path().string();
    BOOST_REQUIRE_MESSAGE(allowed.count(folder), relative << " is in a folder that the layer rule does not know");
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
      std::smatch match;
      if (!std::regex_search(line, match, include_line)) continue;
      const std::string header = match[1];
      const std::string owner = fs::path(header).parent_path().string();
      if (allowed.count(owner))
        BOOST_CHECK_MESSAGE(owner == folder || allowed.at(folder).count(owner), relative << " may not include " << header);
      for (const auto& [pattern, places] : outside) {
        if (!std::regex_search(header, pattern)) continue;
        bool fine = false;
        for (const std::string& place : places) fine = fine || relative.rfind(place, 0) == 0;
        BOOST_CHECK_MESSAGE(fine, relative << " may not include " << header);
      }
    }
  }
}
