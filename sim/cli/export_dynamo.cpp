// A DynamoGraphDeployment (nvidia.com/v1alpha1): a frontend with its router and one service per role. Shape after
// Dynamo's recipes/deepseek-r1/vllm/disagg and examples/backends/vllm/deploy (2026).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "sim/cli/export_plan.hpp"

namespace rackcast {

namespace {

// Kubernetes names: lower case letters, digits and dashes.
std::string resource_name(const std::string& name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '-';
  return out;
}

std::string service_of(const ServeRole& role, const ServePlan& plan) {
  std::string text = fmt::format("    {0}:\n      componentType: worker\n", role.name);
  if (role.name != "aggregated") text += fmt::format("      subComponentType: {}\n", role.name);
  text += fmt::format("      replicas: {}\n", role.engines);
  if (role.nodes > 1) text += fmt::format("      multinode:\n        nodeCount: {}\n", role.nodes);
  text += fmt::format("      resources:\n        limits:\n          gpu: \"{}\"\n", role.gpus_per_node);
  text += "      extraPodSpec:\n        mainContainer:\n          image: VLLM_RUNTIME_IMAGE\n          command: [python3, -m, dynamo.vllm]\n          args:\n";
  const auto argument = [&](const std::string& word, const std::string& comment) { text += fmt::format("            - {}{}\n", word, comment.empty() ? "" : "  # " + comment); };
  argument("--model", "");
  argument(yaml_scalar(plan.model), "");
  if (role.name != "aggregated") {
    argument("--disaggregation-mode", "");
    argument(role.name, "");
  }
  if (role.data_parallel && role.nodes > 1) argument("--data-parallel-hybrid-lb", "");
  for (const ServeFlag& flag : role.flags) {
    argument("--" + flag.name, flag.from);
    if (flag.kind == ServeFlag::Kind::number) argument("\"" + flag.value + "\"", "");
    if (flag.kind == ServeFlag::Kind::text) argument(flag.value, "");
    if (flag.kind == ServeFlag::Kind::json) argument("'" + flag.value + "'", "");
  }
  const bool tells_cache = plan.router == RouterPolicy::prefix_affinity && role.name != "decode";
  if (tells_cache) {
    argument("--kv-events-config", "deployment.router.policy");
    argument(R"('{"publisher":"zmq","topic":"kv-events","endpoint":"tcp://*:5557","enable_kv_cache_events":true}')", "");
  }
  return text;
}

}  // namespace

std::string export_dynamo(const ServePlan& plan) {
  std::string text = export_header(plan, "put your image in place of VLLM_RUNTIME_IMAGE.");
  text += fmt::format("apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata:\n  name: {}\nspec:\n  backendFramework: vllm\n  services:\n", resource_name(plan.name));
  text += "    Frontend:\n      componentType: frontend\n      replicas: 1\n      extraPodSpec:\n        mainContainer:\n          image: VLLM_RUNTIME_IMAGE\n          env:\n";
  text += fmt::format("            - name: DYN_ROUTER_MODE  # deployment.router.policy\n              value: {}\n", plan.router == RouterPolicy::prefix_affinity ? "kv" : "round-robin");
  for (const ServeRole& role : plan.roles) text += service_of(role, plan);
  return text;
}

}  // namespace rackcast
