// The points behind a family's parameters: what their launches spanned, how well the parameters meet them, and what leaves
// that range. A form may hold beyond its points, but nobody has seen it there.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/schema.hpp"

namespace rackcast {

// gflop, mb (from and to HBM), link_mb (the slowest rank's), ranks, rows (of a layer's composite; requests of the host;
// descriptors of a KV transfer), context_mtok (millions of tokens that a rank's decode requests hold; composites).
enum class RangeAxis { gflop, mb, link_mb, ranks, rows, context_mtok };
inline constexpr std::size_t range_axes = 6;
extern const std::string_view range_axis_names[range_axes];

struct AxisSpan {
  double lo = 0, hi = 0;
  bool given() const { return hi > 0; }
  bool holds(double value) const { return value >= lo * (1 - 1e-9) && value <= hi * (1 + 1e-9); }
  void widen(double value) {
    lo = given() && lo < value ? lo : value;
    hi = hi > value ? hi : value;
  }
};

// One launch as a form sees it, by axis; 0: the axis does not apply.
using LaunchWork = std::array<double, range_axes>;
constexpr LaunchWork launch_work(double flops, double bytes, double link_bytes = 0, double ranks = 0, double rows = 0, double context_tokens = 0) {
  return {flops * 1e-9, bytes * 1e-6, link_bytes * 1e-6, ranks, rows, context_tokens * 1e-6};
}

struct RangeExit {
  RangeAxis axis = RangeAxis::gflop;
  double value = 0;
  AxisSpan fitted;
};

struct CostRange {
  int points = 1;
  double mean_error = 0, p90_error = 0;  // of the parameters in the file, as fractions of the measured time
  double cross_validated_error = 0;      // mean over points that were left out of the fit; 0: not cross-validated
  std::array<AxisSpan, range_axes> spans;    // of the points

  std::vector<RangeExit> exits(const LaunchWork& work) const;
};
void fields(Visitor& v, CostRange& r);

// What a run's launches left of the ranges, by family.
class RangeTally {
 public:
  struct Family {
    std::string name;
    double seconds = 0;                   // of launches that left it on any axis
    std::array<AxisSpan, range_axes> reached, fitted;  // of the axes that were left
  };
  void add(std::string_view family, const std::vector<RangeExit>& exits, double seconds);
  void add(const RangeTally& other);
  const std::vector<Family>& families() const { return families_; }
  double seconds() const;
  double share_of(double whole_s) const;  // 0 to 1: composites may take time back from a step
  // "dense_fp4 9.1% (mb 0.31 to 0.5, points 0.9 to 120), ...", most time first; shares of whole_s. Empty: nothing left its range.
  std::string text(double whole_s) const;

 private:
  Family& of(std::string_view name);
  std::vector<Family> families_;          // few: a list is searched
};

}  // namespace rackcast
