#include "sim/spec/gpu.hpp"

namespace rackcast {

void fields(Visitor& v, GpuSpec& g) {
  v.field("name", g.name, "name of the GPU; also of its cost file").required();
  v.field("source", g.source, "where the limits come from, with date").required();
  v.field("memory", g.memory, "HBM that programs can use").required().require(g.memory.value() > 0, "must be > 0 B");
  v.field("hbm_bandwidth", g.hbm_bandwidth, "the vendor's figure; what kernels reach is the cost file's business")
      .required().require(g.hbm_bandwidth.value() > 0, "must be > 0 B/s");
  v.field("bf16", g.bf16, "dense BF16 rate").required().require(g.bf16.value() > 0, "must be > 0 FLOPS");
  v.field("fp8", g.fp8, "dense FP8 rate").required().require(g.fp8.value() > 0, "must be > 0 FLOPS");
  v.field("fp4", g.fp4, "dense FP4 rate; 0: no FP4 tensor cores").require(g.fp4.value() >= 0, "must be >= 0");
  v.field("sm_count", g.sm_count, "streaming multiprocessors").required().require(g.sm_count > 0, "must be > 0");
  v.field("l2", g.l2, "L2 cache").require(g.l2.value() >= 0, "must be >= 0 B");
  v.field("nvlink_bandwidth", g.nvlink_bandwidth, "per direction, per GPU").required()
      .require(g.nvlink_bandwidth.value() > 0, "must be > 0 B/s");
  v.field("host_bandwidth", g.host_bandwidth, "between the GPU and host memory, per direction, per GPU").required()
      .require(g.host_bandwidth.value() > 0, "must be > 0 B/s");
  v.field("power", g.power, "all-in, per GPU: server and its share of cooling").require(g.power.value() >= 0, "must be >= 0 W");
  v.field("owning_price", g.owning_price, "cost of owning one GPU").require(g.owning_price.value() >= 0, "must be >= 0");
  v.field("rental_price", g.rental_price, "price of renting one GPU for three years").require(g.rental_price.value() >= 0, "must be >= 0");
  v.field("price_source", g.price_source, "where prices and power come from, with date");
}

}  // namespace rackcast
