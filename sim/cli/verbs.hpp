// The verbs of rackcast, one file each. A verb adds its options to its subcommand and returns what to run once the
// command line is parsed; its result goes to stdout, notes and progress to stderr. New verb: one file, one row in
// verbs.cpp.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/catalog.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
class Option;
}

namespace rackcast {

// What every verb is given. Filled in by the time that a verb runs.
struct Program {
  std::string data_dir;                          // --data-dir
  std::string executable_dir;                    // where this program lies
  Catalog catalog() const;                       // the scenarios folder in use
};

using Action = std::function<int()>;             // 0, or 1: ran but failed its bound

struct Verb {
  std::string_view name;
  std::string_view help;                         // one line
  std::string_view example;
  Action (*setup)(CLI::App& app, const Program& program);
};
std::span<const Verb> verbs();

// `--set key.path=value`, repeatable.
void add_sets(CLI::App& app, std::vector<std::string>& sets);
// `--seed N`, 0 to 2^64 - 1; anything else is refused.
CLI::Option* add_seed(CLI::App& app, std::uint64_t& seed, const std::string& help);

Action setup_check(CLI::App& app, const Program& program);
Action setup_compare(CLI::App& app, const Program& program);
Action setup_eplb(CLI::App& app, const Program& program);
Action setup_export(CLI::App& app, const Program& program);
Action setup_list(CLI::App& app, const Program& program);
Action setup_run(CLI::App& app, const Program& program);
Action setup_report(CLI::App& app, const Program& program);
Action setup_sensitivity(CLI::App& app, const Program& program);
Action setup_validate(CLI::App& app, const Program& program);
Action setup_schema(CLI::App& app, const Program& program);
Action setup_plan(CLI::App& app, const Program& program);
Action setup_sweep(CLI::App& app, const Program& program);
Action setup_fit(CLI::App& app, const Program& program);
Action setup_step(CLI::App& app, const Program& program);
Action setup_trace(CLI::App& app, const Program& program);

}  // namespace rackcast
