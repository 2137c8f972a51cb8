// rackcast check FILE...: everything that is wrong with files, all at once, with places.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "sim/cli/file_kinds.hpp"
#include "sim/cli/verbs.hpp"

namespace rackcast {

namespace {

struct CheckOptions {
  std::vector<std::string> files, sets;
  std::string kind;
};

int check(const CheckOptions& options, const Catalog& catalog) {
  std::vector<Problem> problems;
  for (const std::string& file : options.files) {
    try {
      const YamlSource source = read_source(file);
      const FileKind& kind = options.kind.empty() ? kind_of(source) : file_kind(options.kind);
      kind.read(source, catalog, options.sets);
      fmt::print("{}: ok ({})\n", file, kind.name);
    } catch (const UserError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (!problems.empty()) throw UserError(std::move(problems));
  return 0;
}

}  // namespace

Action setup_check(CLI::App& app, const Program& program) {
  const auto options = std::make_shared<CheckOptions>();  // lives as long as the action that uses it
  app.add_option("FILE", options->files, "files to check")->required()->type_name("");
  app.add_option("--as", options->kind, "kind of the files; without it folder and keys decide")->type_name("KIND");
  add_sets(app, options->sets);
  return [options, &program] { return check(*options, program.catalog()); };
}

}  // namespace rackcast
