#include "sim/engine/topology.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/error.hpp"

namespace rackcast {

namespace {

// The first GPU at or after `at` where an engine of `gpus` crosses no border that it could avoid.
std::uint32_t aligned(std::uint32_t at, std::uint32_t gpus, std::uint32_t unit) {
  if (gpus > unit) return (at + unit - 1) / unit * unit;
  const bool crosses = at / unit != (at + gpus - 1) / unit;
  return crosses ? (at / unit + 1) * unit : at;
}

}  // namespace

std::vector<std::vector<Placement>> place_engines(const TopologyOptions& options, const std::vector<std::uint32_t>& engines,
                                                  const std::vector<std::uint32_t>& gpus_per_engine) {
  std::vector<std::vector<Placement>> placed(engines.size());
  std::vector<std::uint32_t> used(options.racks, 0);
  for (std::size_t pool = 0; pool < engines.size(); ++pool)
    for (std::uint32_t e = 0; e < engines[pool]; ++e) {
      const auto rack = static_cast<std::uint32_t>(std::uint64_t{e} * options.racks / engines[pool]);
      const std::uint32_t gpus = gpus_per_engine[pool];
      std::uint32_t first = aligned(used[rack], gpus, std::min(options.gpus_per_node, options.gpus_per_rack));
      first = aligned(first, gpus, std::min(options.nvlink_domain, options.gpus_per_rack));
      if (first + gpus > options.gpus_per_rack)
        throw UserError(fmt::format("deployment: an engine of {} GPUs does not fit into what is left of rack {} ({} of {} GPUs "
                                    "taken); use fewer or smaller engines, or more racks",
                                    gpus, rack, used[rack], options.gpus_per_rack));
      used[rack] = first + gpus;
      placed[pool].push_back({rack * options.gpus_per_rack + first, rack});
    }
  return placed;
}

std::string_view link_kind_name(LinkKind kind) {
  constexpr std::array<std::string_view, 6> names{"NVLink out", "NVLink in", "network card out", "network card in", "host memory to GPU", "node memory"};
  return names[static_cast<std::size_t>(kind)];
}

Topology::Topology(const TopologyOptions& options, Network& network) : options_(options) {
  const auto links = [&](LinkKind kind, std::vector<LinkId>& ids, std::uint32_t count, double bytes_per_s) {
    if (bytes_per_s <= 0) return;
    for (std::uint32_t i = 0; i < count; ++i) {
      ids.push_back(network.add_link(bytes_per_s));
      links_.push_back({kind, i, ids.back(), bytes_per_s});
    }
  };
  links(LinkKind::nvlink_out, nvlink_out_, gpus(), options.nvlink_bytes_per_s);
  links(LinkKind::nvlink_in, nvlink_in_, gpus(), options.nvlink_bytes_per_s);
  links(LinkKind::nic_out, nic_out_, gpus(), options.nic_bytes_per_s);
  links(LinkKind::nic_in, nic_in_, gpus(), options.nic_bytes_per_s);
  links(LinkKind::host_in, host_in_, gpus(), options.host_bytes_per_s);
  links(LinkKind::node_memory, node_memory_, nodes(), options.host_memory_bytes_per_s);
}

std::uint32_t Topology::domain_of(std::uint32_t gpu) const {
  const std::uint32_t per_rack = (options_.gpus_per_rack + options_.nvlink_domain - 1) / options_.nvlink_domain;
  return gpu / options_.gpus_per_rack * per_rack + gpu % options_.gpus_per_rack / options_.nvlink_domain;
}

std::array<LinkId, 2> Topology::route(std::uint32_t from_gpu, std::uint32_t to_gpu) const {
  RACKCAST_CHECK(from_gpu != to_gpu, "a GPU sends to itself");
  if (same_domain(from_gpu, to_gpu)) return {nvlink_out_.at(from_gpu), nvlink_in_.at(to_gpu)};
  if (nic_out_.empty()) throw UserError("rack.nic_bandwidth: KV must cross NVLink domains, but the rack has no network cards");
  return {nic_out_[from_gpu], nic_in_[to_gpu]};
}

void Topology::set_nvlink_share(double now_s, Network& network, std::uint32_t gpu, double share) const {
  for (const auto* links : {&nvlink_out_, &nvlink_in_}) network.set_capacity(now_s, links->at(gpu), options_.nvlink_bytes_per_s * share);
}

void Topology::set_nic_share(double now_s, Network& network, std::uint32_t gpu, double share) const {
  if (nic_out_.empty()) return;
  for (const auto* links : {&nic_out_, &nic_in_}) network.set_capacity(now_s, links->at(gpu), options_.nic_bytes_per_s * share);
}

void Topology::add_throttle(double share, Network& network) {
  for (std::uint32_t g = 0; g < gpus(); ++g) throttle_out_.push_back(network.add_link(share * options_.nvlink_bytes_per_s));
  for (std::uint32_t g = 0; g < gpus(); ++g) throttle_in_.push_back(network.add_link(share * options_.nvlink_bytes_per_s));
}

// Through the host: out of the GPU into its node's memory (that direction of the host link carries nothing else), over
// the network cards where the nodes differ, and in again.
std::vector<LinkId> Topology::weight_route(std::uint32_t from, std::uint32_t to, bool through_host, bool throttled) const {
  std::vector<LinkId> path;
  if (through_host && !host_in_.empty()) {
    const std::uint32_t a = node_of(from), b = node_of(to);
    if (!node_memory_.empty()) path.push_back(node_memory_[a]);
    if (a != b && !node_memory_.empty()) path.push_back(node_memory_[b]);
    if (a != b && !nic_out_.empty()) path.insert(path.end(), {nic_out_[from], nic_in_[to]});
    path.push_back(host_in_[to]);
    return path;
  }
  const auto direct = route(from, to);
  path.assign(direct.begin(), direct.end());
  if (throttled && same_domain(from, to)) path.insert(path.end(), {throttle_out_[from], throttle_in_[to]});
  return path;
}

std::vector<LinkId> Topology::host_route(std::uint32_t gpu) const {
  if (host_in_.empty()) throw UserError("rack.gpu.host_bandwidth: a host tier needs a link from the GPU to its node's memory");
  if (node_memory_.empty()) return {host_in_[gpu]};
  return {node_memory_[node_of(gpu)], host_in_[gpu]};
}

}  // namespace rackcast
