#include "sim/spec/rack.hpp"

namespace rackcast {

void fields(Visitor& v, RackSpec& r) {
  v.field("name", r.name, "name of the rack").required();
  v.field("source", r.source, "where the figures come from, with date").required();
  v.reference("gpu", r.gpu, "gpus", "its GPUs").required();
  v.field("gpus", r.gpus, "GPUs in one rack").required().require(r.gpus > 0 && r.gpus <= 100000, "must be 1 to 100000");
  v.field("gpus_per_node", r.gpus_per_node, "GPUs that share a host").required()
      .require(r.gpus_per_node > 0, "must be > 0")
      .require(r.gpus_per_node <= 0 || r.gpus % r.gpus_per_node == 0, "must divide gpus");
  v.field("nvlink_domain", r.nvlink_domain, "GPUs that reach each other over NVLink: 72 on NVL72, 8 on HGX").required()
      .require(r.nvlink_domain > 0, "must be > 0")
      .require(r.nvlink_domain <= 0 || r.gpus_per_node <= 0 || r.nvlink_domain % r.gpus_per_node == 0 || r.gpus_per_node % r.nvlink_domain == 0,
               "must hold whole nodes, or divide one");
  v.field("nic_bandwidth", r.nic_bandwidth, "per GPU and direction, towards other NVLink domains and racks").required()
      .require(r.nic_bandwidth.value() > 0, "must be > 0 B/s");
  v.field("nic_latency", r.nic_latency, "of a small message between NVLink domains").require(r.nic_latency.value() >= 0, "must be >= 0 s");
  v.field("host_memory_per_node", r.host_memory_per_node, "memory of one host").required()
      .require(r.host_memory_per_node.value() >= 0, "must be >= 0 B");
  v.field("host_memory_bandwidth", r.host_memory_bandwidth, "of one host, shared by its GPUs").required()
      .require(r.host_memory_bandwidth.value() > 0, "must be > 0 B/s");
  v.field("host_tier_per_node", r.host_tier_per_node, "part of a host's memory that a KV tier may use by default")
      .require(r.host_tier_per_node.value() >= 0, "must be >= 0 B")
      .require(r.host_tier_per_node <= r.host_memory_per_node, "must fit in host_memory_per_node");
  v.field("racks", r.racks, "identical racks joined by the NICs").require(r.racks > 0 && r.racks <= 10000, "must be 1 to 10000");
}

}  // namespace rackcast
