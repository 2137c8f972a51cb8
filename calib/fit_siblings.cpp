#include "calib/fit_siblings.hpp"

#include <algorithm>

namespace rackcast::calib {

double compute_rate(const GpuSpec& gpu, const std::string& family) {
  if (family == "dense_fp4" || family == "moe_nvfp4") return gpu.fp4.value();
  if (family == "dense_fp8" || family == "moe_fp8" || family == "moe_fp4" || family == "moe_fused" || family == "indexer") return gpu.fp8.value();
  return gpu.bf16.value();
}

namespace {

bool carried_over(const std::string& family) { return family.rfind("dense_", 0) == 0; }

FitPoint scaled(FitPoint p, const GpuSpec& from, const GpuSpec& to) {
  const double memory = to.hbm_bandwidth.value() / from.hbm_bandwidth.value();
  p.flops *= compute_rate(to, p.family) / compute_rate(from, p.family);
  for (double* bytes : {&p.bytes, &p.weight_bytes, &p.cache_bytes}) *bytes *= memory;
  p.source += " (" + p.gpu + " scaled)";
  p.gpu = to.name;
  p.basis = Basis::transferred;
  return p;
}

}  // namespace

std::vector<std::string> add_siblings(std::vector<FitPoint>& own, const std::vector<FitPoint>& all, const std::string& gpu,
                                      const std::map<std::string, GpuSpec>& specs) {
  std::map<std::string, std::size_t> counts;
  for (const FitPoint& p : all)
    if (carried_over(p.family)) counts.emplace(p.family, 0);
  for (const FitPoint& p : own)
    if (carried_over(p.family)) ++counts[p.family];
  std::vector<std::string> helped;
  const GpuSpec& to = specs.at(gpu);
  for (const auto& [family, count] : counts) {
    if (count >= 2 * form_of_family(family).parameters.size() || compute_rate(to, family) <= 0) continue;
    const std::size_t before = own.size();
    for (const FitPoint& p : all)
      if (p.family == family && p.gpu != gpu && compute_rate(specs.at(p.gpu), family) > 0) own.push_back(scaled(p, specs.at(p.gpu), to));
    if (own.size() > before) helped.push_back(family);
  }
  return helped;
}

void know_cache(std::vector<FitPoint>& points, const std::map<std::string, GpuSpec>& specs) {
  for (FitPoint& p : points)
    if (const auto found = specs.find(p.gpu); found != specs.end()) p.cache_bytes = found->second.l2.value();
}

}  // namespace rackcast::calib
