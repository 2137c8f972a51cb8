// Recorded loads are not part of the repository; tests that need them find them under RACKCAST_DATA. Without it they say
// so and pass, unless RACKCAST_DATA_REQUIRED=1.
#pragma once
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace test_support {

inline std::optional<std::string> recorded_data(const std::string& path) {
  const char* root = std::getenv("RACKCAST_DATA");
  const std::string full = root ? std::string(root) + "/" + path : "";
  if (root && std::filesystem::exists(full)) return full;
  const char* required = std::getenv("RACKCAST_DATA_REQUIRED");
  BOOST_REQUIRE_MESSAGE(!required || std::string(required) != "1", "RACKCAST_DATA has no " << path);
  BOOST_TEST_MESSAGE("skipped: RACKCAST_DATA is not set or has no " << path);
  return std::nullopt;
}

}  // namespace test_support
