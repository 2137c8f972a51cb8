// Options that take one of a few words, or a number within limits.
#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>
#include <string>
#include <type_traits>

namespace rackcast {

// Its help lists the words, and nothing else (no enumerator number) is accepted. `names` must outlive the parse.
template <class Enum>
CLI::Option* add_choice(CLI::App& app, const std::string& option, Enum& member, const std::map<std::string, Enum>& names,
                        const std::string& help) {
  std::string list;
  for (const auto& [name, value] : names) list += (list.empty() ? "" : "|") + name;
  const auto to_number = [&names, list](std::string& text) -> std::string {
    const auto found = names.find(text);
    if (found == names.end()) return fmt::format("'{}' is not one of {}", text, list);
    text = std::to_string(static_cast<std::underlying_type_t<Enum>>(found->second));  // what the library reads an enum from
    return {};
  };
  return app.add_option(option, member, help)->transform(CLI::Validator(to_number, ""))->type_name(list);
}

inline CLI::Validator not_empty() {
  return CLI::Validator([](const std::string& text) { return text.empty() ? std::string("needs a name") : std::string(); }, "");
}

// Unlike the library's own range, it refuses what is no number.
inline CLI::Validator number_from(double least, double most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool whole = end != text.c_str() && *end == '\0';
    return whole && value >= least && value <= most ? std::string() : fmt::format("'{}' is not a number from {} to {}", text, least, most);
  };
  return CLI::Validator(check, fmt::format("{} to {}", least, most));
}

}  // namespace rackcast
