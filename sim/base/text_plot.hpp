// Small plots of Unicode characters for a terminal. Pure text in, text out; what cannot be drawn (no finite point) is "".
#pragma once
#include <string>
#include <vector>

namespace rackcast {

struct PlotStyle {
  int columns = 80;
  int rows = 16;         // of draw_points
  bool colour = false;
};

// A quantity's spread, in seconds.
struct PlotRange {
  std::string label;
  double p10 = 0, p50 = 0, p90 = 0, p99 = 0;
};
// One line a range over a common logarithmic axis of time.
std::string draw_ranges(const std::vector<PlotRange>& ranges, const PlotStyle& style);

struct PlotPoint {
  double x = 0, y = 0;
  bool marked = false;   // stands out, and is drawn over the others
};
// Points over axes that begin at zero.
std::string draw_points(const std::vector<PlotPoint>& points, const std::string& x_label, const std::string& y_label, const PlotStyle& style);

}  // namespace rackcast
