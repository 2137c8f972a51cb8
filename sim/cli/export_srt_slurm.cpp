// A recipe for srt-slurm (srtctl). Shape after its recipes/vllm/deepseek-v4-pro (2026): resources per role, engine flags
// as keys without dashes.
#include <fmt/format.h>

#include "sim/cli/export_plan.hpp"

namespace rackcast {

namespace {

// Nodes that the role's engines fill; several small engines share a node.
int nodes_of(const ServeRole& role, int gpus_per_node) {
  const int per_node = gpus_per_node / role.gpus_per_node;
  return role.nodes > 1 ? role.engines * role.nodes : (role.engines + per_node - 1) / per_node;
}

std::string flags_of(const ServeRole& role) {
  std::string text = fmt::format("    {}:\n", role.name);
  if (role.data_parallel && role.nodes > 1) text += "      data-parallel-hybrid-lb: true\n      data-parallel-rpc-port: 13345\n";
  for (const ServeFlag& flag : role.flags) {
    const bool quotes = flag.kind == ServeFlag::Kind::json || flag.kind == ServeFlag::Kind::text;
    const std::string value = flag.kind == ServeFlag::Kind::yes ? "true" : quotes ? "'" + flag.value + "'" : flag.value;
    text += fmt::format("      {}: {}  # {}\n", flag.name, value, flag.from);
  }
  return text;
}

}  // namespace

std::string export_srt_slurm(const ServePlan& plan) {
  std::string text = export_header(plan, "put your image in place of VLLM_CONTAINER.");
  text += fmt::format("name: {}\nmodel:\n  path: {}\n  container: VLLM_CONTAINER\n  precision: \"{}\"\nresources:\n  gpu_type: {}\n  gpus_per_node: {}\n", yaml_scalar(plan.name), yaml_scalar(plan.model),
                      plan.precision, yaml_scalar(plan.gpu), plan.gpus_per_node);
  for (const ServeRole& role : plan.roles) {
    const std::string prefix = role.name == "aggregated" ? "agg" : role.name;
    text += fmt::format("  {0}_nodes: {1}\n  {0}_workers: {2}\n  gpus_per_{0}: {3}\n", prefix, nodes_of(role, plan.gpus_per_node), role.engines, role.ranks);
  }
  text += "frontend:\n  type: dynamo\nbackend:\n  type: vllm\n  connector: null\n  vllm_config:\n";
  for (const ServeRole& role : plan.roles) text += flags_of(role);
  return text;
}

}  // namespace rackcast
