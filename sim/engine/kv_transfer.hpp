// How long a prompt's KV takes from its prefill engine to its decode engine: control, posting of descriptors (serial on
// the GPU that starts the transfer), the flow over the links, and the execution of descriptors.
//   descriptors = regions * ceil(tokens / block) + fixed_descriptors
//   bytes = tokens * bytes_per_token + fixed_bytes
// pull: the decode GPU posts; push: the prefill GPU posts; push_layerwise: layers leave while later ones are computed, so
// that only the last of `layers` is left when the prompt is done.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/spec/deployment.hpp"

namespace rackcast {

struct KvTransferOptions {
  KvTransferMode mode = KvTransferMode::push;
  double control_s = 0;
  double post_nvlink_s = 0, post_nic_s = 0;  // per descriptor, by what the route is made of
  double nic_latency_s = 0;
  double execute_per_descriptor_s = 0;
  double block_tokens = 256;
  double bytes_per_token = 0;
  double fixed_bytes = 0;             // per request
  double regions = 1;                 // separate pieces of a block (layers with KV of their own, kinds of rows)
  double fixed_descriptors = 0;       // per request: windows, compressor states
  double layers = 1;
};

struct KvTransferTotals {
  std::uint64_t count = 0, ended = 0;
  double bytes = 0;
  double time_s = 0;                  // of those that ended: from the computed prompt to the KV in place, waiting included
  double wait_s = 0;                  // of it, waiting for room in a decode engine
};

class KvTransfer {
 public:
  KvTransfer(const KvTransferOptions& options, std::uint32_t gpus) : options_(options), free_s_(gpus, 0.0) {}

  double descriptors(double tokens) const {
    return (std::ceil(tokens / options_.block_tokens) * options_.regions + options_.fixed_descriptors) / exposed_layers();
  }
  double bytes(double tokens) const { return tokens * options_.bytes_per_token + options_.fixed_bytes; }
  std::uint64_t flow_bytes(double tokens) const {
    return static_cast<std::uint64_t>(std::max(1.0, std::round(bytes(tokens) / exposed_layers())));
  }
  // When the flow may start, if the GPU that posts is told at now_s.
  double posted_s(double now_s, std::uint32_t prefill_gpu, std::uint32_t decode_gpu, bool nvlink, double tokens) {
    double& free = free_s_[options_.mode == KvTransferMode::pull ? decode_gpu : prefill_gpu];
    free = std::max(now_s + options_.control_s, free) + descriptors(tokens) * (nvlink ? options_.post_nvlink_s : options_.post_nic_s);
    return free + (nvlink ? 0 : options_.nic_latency_s);
  }
  double execute_s(double tokens) const { return descriptors(tokens) * options_.execute_per_descriptor_s; }

 private:
  double exposed_layers() const { return options_.mode == KvTransferMode::push_layerwise ? options_.layers : 1; }

  KvTransferOptions options_;
  std::vector<double> free_s_;  // by GPU: when its posting thread is free again
};

}  // namespace rackcast
