#include "sim/base/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "sim/base/error.hpp"

namespace fs = std::filesystem;

namespace rackcast {

static constexpr std::uintmax_t max_source_bytes = 2U << 20U;

YamlSource read_source(const std::string& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (!fs::exists(status)) throw UserError(path, 0, 0, "", "there is no such file");
  if (!fs::is_regular_file(status)) throw UserError(path, 0, 0, "", "is not a plain file");
  if (fs::file_size(path, code) > max_source_bytes) throw UserError(path, 0, 0, "", "is larger than 2 MiB");
  std::ifstream stream(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (stream.bad() || !stream.is_open()) throw UserError(path, 0, 0, "", "cannot be read");
  return {path, std::move(text)};
}

Catalog::Catalog(std::vector<std::string> roots) : roots_(std::move(roots)) {}

static bool is_path(std::string_view name) { return name.find('/') != std::string_view::npos || name.ends_with(".yaml"); }

std::string Catalog::path_of(std::string_view kind, std::string_view name, std::string_view from) const {
  std::error_code code;
  if (is_path(name)) {
    const fs::path path = fs::path(from).parent_path() / name;
    if (fs::exists(path, code)) return path.string();
    throw UserError(fmt::format("{} is not there", quote_input(path.string())));
  }
  for (const std::string& root : roots_) {
    const fs::path path = fs::path(root) / kind / fmt::format("{}.yaml", name);
    if (!name.empty() && fs::exists(path, code)) return path.lexically_normal().string();
  }
  const std::string hint = near_match(name, names(kind));
  const std::string what = kind == "." ? "scenario files" : std::string(kind);
  throw UserError(fmt::format("{} is not among the {}{}", quote_input(name), what,
                              hint.empty() ? kind == "." ? std::string() : fmt::format("; `rackcast list {}` shows them", kind) : "; " + hint));
}

YamlSource Catalog::find(std::string_view kind, std::string_view name, std::string_view from) const {
  return read_source(path_of(kind, name, from));
}

std::vector<std::string> Catalog::names(std::string_view kind) const {
  std::set<std::string> found;
  for (const std::string& root : roots_) {
    std::error_code code;
    for (const auto& entry : fs::directory_iterator(fs::path(root) / kind, code))
      if (entry.path().extension() == ".yaml") found.insert(entry.path().stem().string());
  }
  return {found.begin(), found.end()};
}

ReadOptions Catalog::read_options(std::vector<std::string> sets, std::string root_kind) const {
  ReadOptions options;
  options.sets = std::move(sets);
  options.root_kind = std::move(root_kind);
  options.resolve = [catalog = *this](std::string_view kind, std::string_view name, std::string_view from) {
    return catalog.find(kind, name, from);
  };
  return options;
}

}  // namespace rackcast
