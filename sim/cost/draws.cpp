#include "sim/cost/draws.hpp"

#include <cmath>
#include <random>
#include <string_view>

namespace rackcast {

namespace {

constexpr double ninetieth = 1.2815515655446004;  // normal quantile that lo and hi stand for

// Standard normal from a name, so that adding a family does not change the others' draws.
double normal_of(std::uint64_t seed, int draw, std::string_view name) {
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  std::mt19937_64 random(seed * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(draw) * 0xD1B54A32D192ED03ULL + hash);
  const double u = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53, v = static_cast<double>(random() >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * v);
}

// A larger value of these makes a launch faster.
bool is_rate(std::string_view name) {
  for (const std::string_view tail : {"_tflops", "_gbs", "_efficiency"})
    if (name.size() > tail.size() && name.substr(name.size() - tail.size()) == tail) return true;
  return name == "p";
}

// z > 0: slower. Intervals may be lopsided: each side has its own width; positive values move by ratios.
double moved(const CostParameter& p, double z, bool rate) {
  const double side = rate ? -z : z;
  const double end = side > 0 ? p.hi : p.lo;
  const double share = std::abs(side) / ninetieth;
  if (p.value > 0 && end > 0) return p.value * std::pow(end / p.value, share);
  return p.value + (end - p.value) * share;
}

void move_family(CostFamily& family, double z) {
  for (auto& [name, parameter] : family.parameters) {
    double value = moved(parameter, z, is_rate(name));
    if (name == "p") value = std::max(1.0, value);
    if (name.find("efficiency") != std::string::npos) value = std::min(1.0, value);
    parameter.value = value;
  }
}

}  // namespace

CostSpec draw_costs(const CostSpec& central, std::uint64_t seed, int draw) {
  CostSpec drawn = central;
  if (draw == 0) return drawn;
  for (auto& [name, family] : drawn.families) move_family(family, normal_of(seed, draw, name));
  for (auto& [model, own] : drawn.models)
    for (auto& [name, family] : own.families) {
      const bool composite = name.rfind("composite", 0) == 0;
      move_family(family, normal_of(seed, draw, composite ? model + "/composite" : name));
    }
  return drawn;
}

CostSpec scale_costs(const CostSpec& central, const std::string& wanted, double factor) {
  CostSpec scaled = central;
  auto scale = [&](const std::string& name, CostFamily& family) {
    for (auto& [parameter, content] : family.parameters) {
      if (wanted != "*" && name != wanted && parameter != wanted) continue;
      if (parameter == "p" || parameter == "half_mb") continue;
      content.value = is_rate(parameter) ? content.value / factor : content.value * factor;
    }
  };
  for (auto& [name, family] : scaled.families) scale(name, family);
  for (auto& [model, own] : scaled.models)
    for (auto& [name, family] : own.families) scale(name, family);
  return scaled;
}

}  // namespace rackcast
