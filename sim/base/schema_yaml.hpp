// The YAML reader and writer: the only files that include yaml-cpp are schema_yaml*.cpp.
// Reader: event interface (duplicates seen), unknown and duplicate keys refused with a near match, all problems of a
// file at once with file:line:col, bounded size, depth and alias expansion. Writer: shortest round-trip numbers; what
// it writes reads back to the same struct.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/schema.hpp"

namespace rackcast {

struct YamlSource {
  std::string name;  // path, shown in problems
  std::string text;
};

struct ReadOptions {
  // `KEY.PATH=VALUE` overrides of the command line ("a.b[0].c=v"; a[n] appends), applied in order before the walk, also
  // inside referenced files; problems cite the set. A name with dots is quoted: models."deepseek-v4.1-flash".input=...
  std::vector<std::string> sets;
  // Resolves a reference of file `from`: kind ("racks") and name -> source. Empty: references must be inline.
  std::function<YamlSource(std::string_view kind, std::string_view name, std::string_view from)> resolve;
  // Kind of the file itself, so that it may say "base: NAME" at its root. Empty: it may not.
  std::string root_kind;
};

// Reads with walk(visitor), which calls fields(visitor, root struct). Throws UserError with every problem.
void read_yaml(const YamlSource& source, const ReadOptions& options, const std::function<void(Visitor&)>& walk);
// A text as one YAML scalar on one line, quoted where needed.
std::string yaml_scalar(std::string_view text);
std::string write_yaml(const std::function<void(Visitor&)>& walk);

template <class Struct>
Struct read_yaml_as(const YamlSource& source, const ReadOptions& options = {}) {
  Struct result{};
  read_yaml(source, options, [&](Visitor& v) { fields(v, result); });
  return result;
}
template <class Struct>
std::string yaml_of(const Struct& value) {
  Struct copy = value;
  return write_yaml([&](Visitor& v) { fields(v, copy); });
}

}  // namespace rackcast
