// Finds data files by kind and name: <root>/<kind>/<name>.yaml, in the first root that has it. Kind "." is the root
// itself (scenario files). A name that holds '/' or ends in .yaml is a path, relative to the file that says it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/schema_yaml.hpp"
#include "sim/base/text.hpp"

namespace rackcast {

class Catalog {
 public:
  explicit Catalog(std::vector<std::string> roots);  // folders that hold models/, gpus/, racks/, ...
  // UserError with near names. `from`: the file that says the name, for relative paths; empty: the working folder.
  YamlSource find(std::string_view kind, std::string_view name, std::string_view from = "") const;
  std::vector<std::string> names(std::string_view kind) const;          // sorted, without .yaml
  std::string path_of(std::string_view kind, std::string_view name, std::string_view from = "") const;
  ReadOptions read_options(std::vector<std::string> sets = {}, std::string root_kind = "") const;
  const std::vector<std::string>& roots() const { return roots_; }

 private:
  std::vector<std::string> roots_;
};

// Reads a whole file of at most 2 MiB; UserError when it is not there, not a plain file, or larger.
YamlSource read_source(const std::string& path);

}  // namespace rackcast
