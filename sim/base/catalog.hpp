// Finds data files by kind and name: scenarios/<kind>/<name>.yaml, first in --data-dir or RACKCAST_SCENARIOS, then in
// the install prefix, then in the source tree that the program was built from.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/schema_yaml.hpp"

namespace rackcast {

class Catalog {
 public:
  explicit Catalog(std::vector<std::string> roots);  // folders that hold models/, gpus/, racks/, ...
  YamlSource find(std::string_view kind, std::string_view name) const;  // UserError with near names
  std::vector<std::string> names(std::string_view kind) const;          // sorted, without .yaml
  std::string path_of(std::string_view kind, std::string_view name) const;
  ReadOptions read_options(std::vector<std::string> sets = {}) const;

 private:
  std::vector<std::string> roots_;
};

// "did you mean 'x'?" or empty: smallest edit distance at most a third of the length.
std::string near_match(std::string_view given, const std::vector<std::string>& known);

}  // namespace rackcast
