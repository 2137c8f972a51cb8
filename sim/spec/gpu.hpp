// One GPU type: its limits and its price. Each number has a source string; files in scenarios/gpus/.
#pragma once
#include <string>

#include "sim/base/schema.hpp"

namespace rackcast {

struct GpuSpec {
  std::string name;
  std::string source;                 // where the limits come from, with date
  Bytes memory{};                     // usable HBM
  BytesPerSecond hbm_bandwidth{};     // vendor's figure; efficiency is the cost file's business
  FlopsPerSecond bf16{}, fp8{}, fp4{};  // dense rates; fp4 0 = no FP4 tensor cores
  int sm_count = 0;
  Bytes l2{};
  BytesPerSecond nvlink_bandwidth{};  // per direction, per GPU
  BytesPerSecond host_bandwidth{};    // GPU to host memory, per direction, per GPU
  Watts power{};                      // all-in per GPU (server, cooling share)
  DollarsPerSecond owning_price{};    // USD/h in YAML
  DollarsPerSecond rental_price{};
  std::string price_source;           // list and date
};
void fields(Visitor& v, GpuSpec& g);

}  // namespace rackcast
