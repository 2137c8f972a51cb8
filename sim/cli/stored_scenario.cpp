#include "sim/cli/stored_scenario.hpp"

#include <filesystem>

#include "analysis/store.hpp"
#include "sim/base/error.hpp"

namespace rackcast {

YamlSource scenario_source(const std::string& what) {
  std::error_code code;
  if (std::filesystem::is_directory(what, code)) return read_source(what + "/resolved.yaml");
  const std::size_t colon = what.rfind(':');
  if (colon == std::string::npos || what.ends_with(".yaml") || std::filesystem::exists(what, code)) return read_source(what);
  const std::string id = what.substr(colon + 1);
  constexpr std::size_t shortest_key = 6;
  for (const StoredResult& row : Store(what.substr(0, colon), Store::Mode::read).all())
    if (std::to_string(row.id) == id || (id.size() >= shortest_key && row.key.starts_with(id))) return {what, row.scenario};
  throw UserError(what, 0, 0, "", "the store has no such row; give its number or the first 6 or more digits of its id");
}

}  // namespace rackcast
