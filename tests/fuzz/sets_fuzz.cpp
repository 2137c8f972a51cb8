// --set arguments, a line each, on a scenario that is right.
#include "sim/spec/scenario.hpp"
#include "tests/fuzz/target.hpp"

using namespace rackcast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});
  static const YamlSource standard = read_source(RACKCAST_SOURCE_DIR "/scenarios/standard.yaml");
  return fuzz::refuse_or_read(data, size, [&](std::string_view text) {
    std::vector<std::string> sets;
    while (!text.empty() && sets.size() < 20) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      sets.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(text.size(), end + 1));
    }
    read_scenario(standard, catalog, sets);
  });
}
