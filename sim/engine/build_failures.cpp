// From a scenario's failures to dated or random events on engines, and how long a restart takes.
#include <algorithm>

#include "sim/engine/build.hpp"

namespace rackcast {

namespace {

constexpr double disk_bytes_per_s = 12e9, network_bytes_per_s = 5e9;  // of a node; assumed, see reload_tiers

double weight_bytes(const MemoryPlan& plan) {
  double sum = 0;
  for (const MemoryLine& line : plan.lines)
    if (line.what != "activations" && line.what != "logits" && line.what != "runtime reserve") sum += line.bytes;
  return sum;
}

// The GPUs of a node read together.
double reload_s(const Scenario& s, const BuiltPool& pool) {
  const double gpus = std::min(pool.spec.ranks(), s.rack.gpus_per_node);
  const double bytes = weight_bytes(pool.memory) * gpus;
  const double given = s.failures.reload_bandwidth.value();
  if (given > 0) return bytes / given;
  switch (s.failures.reload) {
    case ReloadTier::peer: return bytes / (gpus * s.rack.gpu.nvlink_bandwidth.value());
    case ReloadTier::host: {
      const double links = gpus * s.rack.gpu.host_bandwidth.value(), memory = s.rack.host_memory_bandwidth.value();
      return bytes / (memory > 0 ? std::min(links, memory) : links);
    }
    case ReloadTier::disk: return bytes / disk_bytes_per_s;
    case ReloadTier::network: return bytes / network_bytes_per_s;
  }
  throw InternalError("a reload tier without a bandwidth");
}

}  // namespace

void add_failures(const Scenario& s, const Catalog& catalog, BuiltRun& run) {
  FailureOptions& o = run.options.failures;
  o.in_flight = s.failures.in_flight;
  o.detection_s = s.failures.detection.value();
  o.spare_gpus = static_cast<std::uint32_t>(std::max(0, s.rack.gpus * s.rack.racks - s.deployment.gpus()));
  for (const FailureSpec& spec : s.failures.events) {
    static constexpr const char* names[] = {"prefill", "decode", "aggregated"};
    std::uint32_t first = 0;
    const BuiltPool* pool = nullptr;
    for (const BuiltPool& built : run.pools) {
      if (built.name == names[static_cast<int>(spec.pool)]) {
        pool = &built;
        break;
      }
      first += static_cast<std::uint32_t>(built.spec.engines);
    }
    RACKCAST_CHECK(pool, "a failure names a pool that was not built");
    FailureSource source;
    source.kind = spec.kind;
    source.gpus = static_cast<std::uint32_t>(pool->spec.ranks());
    source.share = spec.share;
    source.lasts_s = spec.lasts.value();
    source.down_s = s.failures.restart.value() + reload_s(s, *pool);
    if (spec.at.value() >= 0) {
      source.at_s = spec.at.value();
      source.first_engine = first + static_cast<std::uint32_t>(spec.engine);
      source.gpu = static_cast<std::uint32_t>(spec.gpu);
    } else {
      source.every_s = spec.every.value();
      source.first_engine = first;
      source.engines = static_cast<std::uint32_t>(pool->spec.engines);
    }
    if (spec.kind == FailureKind::nvlink && spec.share < 1) {
      run.slowed.push_back(make_step_model(s.model, s.rack, pool->spec, s.deployment, catalog, 1 - spec.share));
      source.slowed = run.slowed.back().get();
    }
    o.sources.push_back(source);
  }
}

}  // namespace rackcast
