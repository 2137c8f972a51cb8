#include "sim/base/text_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace rackcast {

namespace {

constexpr const char *bright = "\x1b[1;36m", *soft = "\x1b[2m", *plain = "\x1b[0m";

// A line of cells, each one character of several bytes, with runs of one colour.
class Cells {
 public:
  Cells(std::size_t count, bool colour) : cells_(count, {" ", nullptr}), colour_(colour) {}
  void set(std::size_t at, const char* character, const char* ink) {
    if (at < cells_.size()) cells_[at] = {character, ink};
  }
  std::string text() const {
    std::string line;
    const char* ink = nullptr;
    std::size_t end = cells_.size();
    while (end > 0 && std::string_view(cells_[end - 1].character) == " ") --end;
    for (std::size_t i = 0; i < end; ++i) {
      if (colour_ && cells_[i].ink != ink) line += cells_[i].ink ? cells_[i].ink : plain;
      ink = cells_[i].ink;
      line += cells_[i].character;
    }
    if (colour_ && ink) line += plain;
    return line;
  }

 private:
  struct Cell {
    const char* character;
    const char* ink;
  };
  std::vector<Cell> cells_;
  bool colour_;
};

std::string seconds_text(double value) {
  if (value < 0.9e-3) return fmt::format("{:.3g} us", value * 1e6);
  if (value < 0.9) return fmt::format("{:.3g} ms", value * 1e3);
  return fmt::format("{:.3g} s", value);
}

std::string short_number(double value) {
  if (value >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (value >= 1e3) return fmt::format("{:.3g}K", value / 1e3);
  return fmt::format("{:.3g}", value);
}

// The least of 1, 2, 5 x 10^n that is not below value.
double round_up(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0})
    if (step * power >= value) return step * power;
  return 10 * power;
}

void put(std::string& line, std::size_t at, const std::string& text) {
  if (line.size() < at + text.size()) line.resize(at + text.size(), ' ');
  line.replace(at, text.size(), text);
}

}  // namespace

std::string draw_ranges(const std::vector<PlotRange>& ranges, const PlotStyle& style) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  std::size_t label_width = 0;
  const auto drawable = [](const PlotRange& r) { return r.p10 > 0 && std::isfinite(r.p99) && r.p99 >= r.p10; };
  for (const PlotRange& r : ranges) {
    label_width = std::max(label_width, r.label.size());
    if (!drawable(r)) continue;
    low = std::min(low, r.p10);
    high = std::max(high, r.p99);
  }
  if (!(high > 0)) return "";
  const int from = static_cast<int>(std::floor(std::log10(low))), to = std::max(from + 1, static_cast<int>(std::ceil(std::log10(high))));
  const auto width = static_cast<std::size_t>(std::max(10, style.columns - static_cast<int>(label_width) - 10));
  const auto cell = [&](double value) { return static_cast<std::size_t>(std::lround((std::log10(value) - from) / (to - from) * static_cast<double>(width - 1))); };
  std::string axis, out;
  for (int decade = from; decade <= to; ++decade) {
    const std::string text = seconds_text(std::pow(10, decade));
    const std::size_t at = label_width + 2 + cell(std::pow(10, decade));
    if (axis.size() < at) put(axis, at, text);  // where there is room
  }
  out += axis + "\n";
  for (const PlotRange& r : ranges) {
    if (!drawable(r)) continue;
    Cells cells(width, style.colour);
    for (int decade = from; decade <= to; ++decade) cells.set(cell(std::pow(10, decade)), "\u250a", soft);
    for (std::size_t i = cell(r.p10); i <= cell(r.p99); ++i) cells.set(i, "\u2500", nullptr);
    cells.set(cell(r.p10), "\u251c", nullptr);
    cells.set(cell(r.p99), "\u2524", nullptr);
    for (std::size_t i = cell(r.p50); i <= cell(r.p90); ++i) cells.set(i, "\u2592", bright);
    cells.set(cell(r.p50), "\u2588", bright);
    out += fmt::format("{:<{}}  {}\n", r.label, label_width, cells.text());
  }
  return out + fmt::format("{:<{}}  \u251c p10   \u2588 p50   \u2592 to p90   \u2524 p99\n", "", label_width);
}

std::string draw_points(const std::vector<PlotPoint>& points, const std::string& x_label, const std::string& y_label, const PlotStyle& style) {
  const auto drawable = [](const PlotPoint& p) { return std::isfinite(p.x) && std::isfinite(p.y) && p.x >= 0 && p.y >= 0; };
  double most_x = 0, most_y = 0;
  for (const PlotPoint& p : points) {
    if (!drawable(p)) continue;
    most_x = std::max(most_x, p.x);
    most_y = std::max(most_y, p.y);
  }
  if (!(most_x > 0) || !(most_y > 0)) return "";
  const double top = round_up(most_y), right = round_up(most_x);
  constexpr std::size_t margin = 8;
  const auto width = static_cast<std::size_t>(std::max(10, style.columns - static_cast<int>(margin) - 2)), rows = static_cast<std::size_t>(std::max(4, style.rows));
  std::vector<Cells> grid(rows, Cells(width, style.colour));
  for (const bool marked : {false, true})
    for (const PlotPoint& p : points) {
      if (!drawable(p) || p.marked != marked) continue;
      const auto x = static_cast<std::size_t>(std::lround(p.x / right * static_cast<double>(width - 1))), y = static_cast<std::size_t>(std::lround(p.y / top * static_cast<double>(rows - 1)));
      grid[rows - 1 - y].set(x, marked ? "\u25cf" : "\u00b7", marked ? bright : nullptr);
    }
  std::string out = y_label + "\n";
  for (std::size_t i = 0; i < rows; ++i) {
    const bool labelled = i % 5 == 0 || i + 1 == rows;
    const double value = top * static_cast<double>(rows - 1 - i) / static_cast<double>(rows - 1);
    out += fmt::format("{:>{}}{}{}\n", labelled ? short_number(value) : "", margin - 1, labelled ? "\u2524" : "\u2502", grid[i].text());
  }
  out += std::string(margin - 1, ' ') + "\u2514";
  for (std::size_t i = 0; i < width; ++i) out += "\u2500";
  std::string axis(margin, ' ');
  for (int quarter = 0; quarter <= 4; ++quarter) {
    const std::string text = short_number(right * quarter / 4);
    const std::size_t end = margin + (width - 1) * static_cast<std::size_t>(quarter) / 4 + 1;
    put(axis, quarter == 0 ? margin : end - std::min(end, text.size()), text);
  }
  return out + "\n" + axis + "\n" + std::string(margin, ' ') + x_label + "\n";
}

}  // namespace rackcast
