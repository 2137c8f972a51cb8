// Where engines sit and which links data takes. GPUs are numbered over all racks; each has an NVLink port, a network
// card and a link to its node's memory, one capacity per direction. Switches do not block, so they are no link: a route
// is the sender's port and the receiver's port (NVLink inside a domain, network cards between domains and racks).
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/engine/network.hpp"

namespace rackcast {

struct TopologyOptions {
  std::uint32_t gpus_per_rack = 72;
  std::uint32_t gpus_per_node = 4;
  std::uint32_t nvlink_domain = 72;
  std::uint32_t racks = 1;
  double nvlink_bytes_per_s = 900e9;         // per GPU and direction
  double nic_bytes_per_s = 100e9;            // per GPU and direction; 0: none
  double host_bytes_per_s = 400e9;           // GPU to host memory, per direction
  double host_memory_bytes_per_s = 800e9;    // of a node, shared by its GPUs; 0: no limit of its own
};

enum class LinkKind : std::uint8_t { nvlink_out, nvlink_in, nic_out, nic_in, host_in, node_memory };
std::string_view link_kind_name(LinkKind kind);

struct TopologyLink {
  LinkKind kind = LinkKind::nvlink_out;
  std::uint32_t place = 0;                   // GPU; node for node_memory
  LinkId id = 0;
  double bytes_per_s = 0;
};

struct Placement {
  std::uint32_t first_gpu = 0;
  std::uint32_t rack = 0;
};

// Engines of one pool are spread evenly over the racks; within a rack, pools and engines follow one another, and an
// engine that fits into a node or an NVLink domain does not straddle its border. UserError when they do not fit.
std::vector<std::vector<Placement>> place_engines(const TopologyOptions& options, const std::vector<std::uint32_t>& engines,
                                                  const std::vector<std::uint32_t>& gpus_per_engine);

class Topology {
 public:
  Topology(const TopologyOptions& options, Network& network);
  std::array<LinkId, 2> route(std::uint32_t from_gpu, std::uint32_t to_gpu) const;
  // Weights from one GPU to another. throttled: under the share of NVLink that add_throttle() gave.
  std::vector<LinkId> weight_route(std::uint32_t from_gpu, std::uint32_t to_gpu, bool through_host, bool throttled) const;
  void add_throttle(double share, Network& network);  // before the first flow
  // From the node's memory into a GPU. One link where the node's memory has no limit of its own.
  std::vector<LinkId> host_route(std::uint32_t gpu) const;
  // A GPU whose NVLink ports or network card have `share` of their bandwidth; 0: none.
  void set_nvlink_share(double now_s, Network& network, std::uint32_t gpu, double share) const;
  void set_nic_share(double now_s, Network& network, std::uint32_t gpu, double share) const;
  std::uint32_t node_of(std::uint32_t gpu) const { return gpu / options_.gpus_per_node; }
  std::uint32_t nodes() const { return (options_.gpus_per_rack * options_.racks + options_.gpus_per_node - 1) / options_.gpus_per_node; }
  bool same_domain(std::uint32_t a, std::uint32_t b) const { return domain_of(a) == domain_of(b); }
  const TopologyOptions& options() const { return options_; }
  const std::vector<TopologyLink>& links() const { return links_; }
  std::uint32_t gpus() const { return options_.gpus_per_rack * options_.racks; }

 private:
  std::uint32_t domain_of(std::uint32_t gpu) const;

  TopologyOptions options_;
  std::vector<TopologyLink> links_;
  std::vector<LinkId> nvlink_out_, nvlink_in_, nic_out_, nic_in_, host_in_, node_memory_, throttle_out_, throttle_in_;
};

}  // namespace rackcast
