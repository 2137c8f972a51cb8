// `vllm serve` per role, as one bash script that each node runs with its role and place.
#include <fmt/format.h>

#include <algorithm>

#include "sim/cli/export_plan.hpp"

namespace rackcast {

namespace {

// Quoted, so that the shell takes it as one word whatever it holds.
std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shell_word(const ServeFlag& flag) {
  if (flag.kind == ServeFlag::Kind::yes) return "--" + flag.name;
  return fmt::format("--{} {}", flag.name, flag.kind == ServeFlag::Kind::json ? shell_quoted(flag.value) : flag.value);
}

// How the processes of one engine find each other; each node serves its own ranks.
std::string across_nodes(const ServeRole& role) {
  if (role.nodes == 1) return "";
  if (role.data_parallel)
    return fmt::format("  flags+=(--data-parallel-size-local {0} --data-parallel-start-rank $((node * {0})) --data-parallel-address \"$head\" --data-parallel-rpc-port 13345 --data-parallel-hybrid-lb)\n", role.gpus_per_node);
  return fmt::format("  flags+=(--nnodes {} --node-rank \"$node\" --master-addr \"$head\")\n  [ \"$node\" -eq 0 ] || flags+=(--headless)\n", role.nodes);
}

std::string case_of(const ServeRole& role) {
  std::string text = fmt::format("{})  # {} engine{} of {} GPUs, {} node{} each\n  gpus={}\n  flags=(\n", role.name, role.engines, role.engines == 1 ? "" : "s",
                                 role.ranks, role.nodes, role.nodes == 1 ? "" : "s", role.gpus_per_node);
  for (const ServeFlag& flag : role.flags) text += fmt::format("    {}  # {}\n", shell_word(flag), flag.from);
  return text + "  )\n" + across_nodes(role) + "  ;;\n";
}

}  // namespace

std::string export_vllm(const ServePlan& plan) {
  std::string text = "#!/usr/bin/env bash\n" + export_header(plan, "one engine process group per call.");
  text += R"(#
# Usage: serve.sh ROLE NODE HEAD [SLOT]
#   NODE  0, 1, ... within the engine    HEAD  address of the engine's node 0    SLOT  which engine of this node
set -euo pipefail
role=$1 node=$2 head=$3 slot=${4:-0}
case "$role" in
)";
  for (const ServeRole& role : plan.roles) text += case_of(role);
  text += fmt::format(R"sh(*) echo "no role $role here" >&2; exit 2 ;;
esac
devices=$(seq -s, $((slot * gpus)) $((slot * gpus + gpus - 1)))
export CUDA_VISIBLE_DEVICES=$devices VLLM_NIXL_SIDE_CHANNEL_HOST="$(hostname -i)" VLLM_NIXL_SIDE_CHANNEL_PORT=$((5600 + slot * gpus))
exec vllm serve {} --port $((8000 + slot)) "${{flags[@]}}"
)sh",
                      shell_quoted(plan.model));
  return text;
}

}  // namespace rackcast
