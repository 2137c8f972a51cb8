#include "calib/plan.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "sim/base/error.hpp"

namespace rackcast::calib {
namespace {

template <typename T>
void shuffle(std::vector<T>& items, std::mt19937_64& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random() % i]);
}

}  // namespace

void shuffle_points(std::vector<PlannedPoint>& points, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  shuffle(points, random);
}

std::vector<PlannedPoint> plan_points(const std::vector<const kernels::Family*>& families, kernels::Grid grid, int passes,
                                      std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<PlannedPoint> all;
  for (int pass = 1; pass <= passes; ++pass) {
    std::vector<PlannedPoint> points;
    for (const kernels::Family* family : families)
      for (kernels::Shape& shape : family->grid(grid)) points.push_back({family, std::move(shape), pass});
    shuffle(points, random);
    for (PlannedPoint& point : points) all.push_back(std::move(point));
  }
  return all;
}

std::vector<PlannedPoint> sample_points(const std::vector<PlannedPoint>& points, double share, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::set<const kernels::Family*> seen;
  std::vector<PlannedPoint> kept;
  for (const PlannedPoint& point : points) {
    const bool drawn = static_cast<double>(random() >> 11) * 0x1p-53 < share;
    const bool first = seen.insert(point.family).second;
    if (drawn || first) kept.push_back(point);
  }
  return kept;
}

std::vector<const kernels::Family*> select_families(const std::vector<std::string>& names) {
  const auto all = kernels::families();
  if (names.empty()) return {all.begin(), all.end()};
  std::vector<const kernels::Family*> chosen;
  for (const std::string& name : names) {
    const kernels::Family* family = kernels::find_family(name);
    if (!family) {
      std::string known;
      for (const kernels::Family* each : all) known += (known.empty() ? "" : ", ") + each->name();
      throw UserError("there is no kernel family '" + name + "'; there are " + known);
    }
    chosen.push_back(family);
  }
  return chosen;
}

}  // namespace rackcast::calib
