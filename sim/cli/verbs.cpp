#include "sim/cli/verbs.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "sim/base/error.hpp"

namespace rackcast {

std::span<const Verb> verbs() {
  static constexpr Verb table[] = {
      {"run", "simulates one scenario: throughput, latency, cache hits, where the time goes, cost", "rackcast run scenarios/standard.yaml --out results/standard", setup_run},
      {"step", "what one engine iteration costs, operator by operator", "rackcast step --model deepseek-v4.1-flash --gpu gb300 --dep 32 --case '16*6@128K:5'", setup_step},
      {"eplb", "what placement policies make of recorded expert counts, and placement tables", "rackcast eplb counts.csv --ep 32 --redundant-experts 32 --out table.csv", setup_eplb},
      {"export", "launch files for vLLM, Dynamo and srt-slurm from a scenario or a result", "rackcast export scenarios/standard.yaml --format vllm", setup_export},
      {"trace", "what a load looks like, its run-length form, loads made to measure", "rackcast trace stats sessions/", setup_trace},
      {"compare", "which change between two scenarios gave what, from real runs", "rackcast compare results/a results/b", setup_compare},
      {"sweep", "runs every combination of a sweep file, each in its own process", "rackcast sweep scenarios/sweep-small.yaml --out results.sqlite", setup_sweep},
      {"plan", "the best deployment within limits, and what stands in the way of a better one", "rackcast plan scenarios/plan-rack.yaml --set constraints.p90_tok_s_user=120", setup_plan},
      {"sensitivity", "how much the answer moves when one thing is 10% faster, one at a time", "rackcast sensitivity scenarios/standard.yaml --metric p90_tok_s_user", setup_sensitivity},
      {"validate", "predicts published results and says how far off each is", "rackcast validate steps prefill", setup_validate},
      {"report", "one self-contained HTML page of a sweep or a run", "rackcast report results.sqlite --out report.html", setup_report},
      {"fit", "measurements in, cost file out", "rackcast fit points.jsonl --out my-gpu.yaml", setup_fit},
      {"check", "reads files and says everything that is wrong with them", "rackcast check scenarios/standard.yaml", setup_check},
      {"schema", "every key of a kind of file: type, default, rule", "rackcast schema scenario", setup_schema},
      {"list", "what can be named in a scenario", "rackcast list gpus", setup_list},
  };
  return table;
}

// --data-dir, then RACKCAST_SCENARIOS, then the installed data beside the program or, for a program that runs from its
// build folder, the source tree.
Catalog Program::catalog() const {
  namespace fs = std::filesystem;
  std::vector<std::string> roots;
  std::error_code code;
  const auto add = [&](const std::string& root, const char* said_by) {
    if (root.empty()) return;
    if (!fs::is_directory(root, code)) throw UserError(fmt::format("{} says {}, which is no folder", said_by, quote_input(root)));
    roots.push_back(root);
  };
  add(data_dir, "--data-dir");
  const char* const variable = std::getenv("RACKCAST_SCENARIOS");
  add(variable == nullptr ? "" : variable, "RACKCAST_SCENARIOS");
  const fs::path installed = fs::path(executable_dir) / RACKCAST_DATA_FROM_BIN;
  roots.push_back((fs::is_directory(installed, code) ? installed : fs::path(RACKCAST_SOURCE_DATA)).lexically_normal().string());
  return Catalog(std::move(roots));
}

void add_sets(CLI::App& app, std::vector<std::string>& sets) {
  app.add_option("--set", sets, "key.path=value: overrides a key, also inside referenced files; repeatable")
      ->type_size(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("KEY=VALUE");
}

CLI::Option* add_seed(CLI::App& app, std::uint64_t& seed, const std::string& help) {
  const auto whole = [](const std::string& text) {  // the library would wrap -1 around and cut what is too long
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::string() : "'" + text + "' is no whole number from 0 to 2^64 - 1";
  };
  return app.add_option("--seed", seed, help)->check(CLI::Validator(whole, "N"));
}

}  // namespace rackcast
