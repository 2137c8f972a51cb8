// The kinds of YAML files that rackcast reads: how to read one, and how to document its keys. New kind: one row.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/catalog.hpp"
#include "sim/base/schema_doc.hpp"

namespace rackcast {

struct FileKind {
  std::string_view name;     // as `rackcast schema NAME` says it
  std::string_view folder;   // under scenarios/; "." for files that lie there
  std::string_view root_key; // a key at the root that only this kind has; empty: the folder decides
  std::string_view what;
  // Reads and checks everything that `run` would; throws UserError.
  void (*read)(const YamlSource& source, const Catalog& catalog, const std::vector<std::string>& sets);
  DocNode (*document)();
};
std::span<const FileKind> file_kinds();

const FileKind& file_kind(std::string_view name);  // UserError with a near match

// By the folder it lies in, else by its root keys, else a scenario.
const FileKind& kind_of(const YamlSource& source);

}  // namespace rackcast
