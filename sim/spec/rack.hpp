// How GPUs are put together: nodes (trays) of GPUs, one NVLink domain, network cards, host memory.
#pragma once
#include <string>

#include "sim/spec/gpu.hpp"

namespace rackcast {

struct RackSpec {
  std::string name;
  std::string source;
  GpuSpec gpu;                       // reference into scenarios/gpus
  int gpus = 0;                      // in one rack
  int gpus_per_node = 0;
  int nvlink_domain = 0;             // GPUs that reach each other over NVLink (72 on NVL72, 8 on HGX)
  BytesPerSecond nic_bandwidth{};    // per GPU and direction, towards other NVLink domains and racks
  Seconds nic_latency{};
  Bytes host_memory_per_node{};
  BytesPerSecond host_memory_bandwidth{};  // per node, shared by its GPUs
  Bytes host_tier_per_node{};        // part of host memory that a KV tier may use by default
  int racks = 1;                     // identical racks joined by the NICs
};
void fields(Visitor& v, RackSpec& r);

}  // namespace rackcast
