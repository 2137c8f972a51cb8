// A scenario as what an engine's command line needs: roles, flags and where each flag's value comes from. The formats
// (vllm, dynamo, srt-slurm) only arrange it. New format: one file, one row in export.cpp.
#pragma once
#include <string>
#include <vector>

#include "sim/spec/scenario.hpp"

namespace rackcast {

struct ServeFlag {
  enum class Kind { number, text, json, yes };  // yes: a flag without value
  std::string name;   // without the leading dashes
  std::string value;
  Kind kind = Kind::number;
  std::string from;   // the scenario's key, or what it follows from
};

struct ServeRole {
  std::string name;   // prefill, decode, aggregated
  int engines = 0;
  int ranks = 0;      // of one engine
  int gpus_per_node = 0;
  int nodes = 1;      // of one engine
  bool data_parallel = false;
  std::vector<ServeFlag> flags;
  const ServeFlag& flag(const std::string& flag_name) const;
};

struct ServePlan {
  std::string name, model, gpu;   // model: what the engine is told to load
  std::string precision;          // of the routed experts: fp4, fp8, bf16
  int gpus_per_node = 0;
  RouterPolicy router = RouterPolicy::round_robin;
  std::vector<ServeRole> roles;
  std::vector<std::string> notes; // what the scenario says and the engine has no flag for
};

// The vLLM version whose flags are written, and where they are documented.
inline constexpr const char* serve_flags_version = "vLLM 0.27 (2026)";
extern const std::vector<std::string> serve_flag_sources;

ServePlan serve_plan(const Scenario& scenario, const std::string& model_path);

// The lines on top of every format: what this is, which engine's flags, notes. Safe in a comment whatever the name says.
std::string export_header(const ServePlan& plan, const std::string& what);

std::string export_vllm(const ServePlan& plan);
std::string export_dynamo(const ServePlan& plan);
std::string export_srt_slurm(const ServePlan& plan);

}  // namespace rackcast
