#define BOOST_TEST_MODULE text_plot
#include "sim/base/text_plot.hpp"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <sstream>

using namespace rackcast;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t characters(const std::string& utf8) {
  std::size_t count = 0;
  for (const char c : utf8) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

std::size_t column_of(const std::string& line, const std::string& what) {
  const std::size_t at = line.find(what);
  return at == std::string::npos ? at : characters(line.substr(0, at));
}

}  // namespace

BOOST_AUTO_TEST_CASE(ranges_stand_over_a_common_logarithmic_axis) {
  const std::string plot = draw_ranges({{"a", 0.01, 0.1, 1, 10}, {"bb", 0.01, 0.01, 0.01, 0.1}}, {.columns = 44});
  const auto lines = lines_of(plot);
  BOOST_REQUIRE_EQUAL(lines.size(), 4u);
  BOOST_TEST(column_of(lines[1], "█") == column_of(lines[0], "100 ms"));
  BOOST_TEST(column_of(lines[1], "┤") == column_of(lines[0], "10 s"));
  BOOST_TEST(column_of(lines[2], "█") == column_of(lines[0], "10 ms"));
  for (const std::string& line : lines) BOOST_TEST(characters(line) <= 44u);
}

BOOST_AUTO_TEST_CASE(points_stand_where_their_axes_say) {
  const std::string plot = draw_points({{0, 0, false}, {100, 200, true}, {50, 100, false}}, "x", "y", {.columns = 50, .rows = 11});
  const auto lines = lines_of(plot);
  BOOST_REQUIRE_EQUAL(lines.size(), 15u);  // label, 11 rows, axis, its numbers, label
  BOOST_TEST(lines[1].find("200") != std::string::npos);
  BOOST_TEST(column_of(lines[1], "●") == 8u + 39u);
  BOOST_TEST(column_of(lines[11], "·") == 8u);
  BOOST_TEST(column_of(lines[6], "·") == 8u + 20u);
  for (const std::string& line : lines) BOOST_TEST(characters(line) <= 50u);
}

BOOST_AUTO_TEST_CASE(colours_come_only_when_asked_for_and_end_on_their_line) {
  const std::vector<PlotPoint> points{{1, 2, true}, {2, 1, false}};
  BOOST_TEST(draw_points(points, "x", "y", {}).find('\x1b') == std::string::npos);
  BOOST_TEST(draw_ranges({{"a", 1, 2, 3, 4}}, {}).find('\x1b') == std::string::npos);
  for (const std::string& line : lines_of(draw_points(points, "x", "y", {.colour = true}) + draw_ranges({{"a", 1, 2, 3, 4}}, {.colour = true}))) {
    const std::size_t last = line.rfind("\x1b[");
    if (last != std::string::npos) BOOST_TEST(line.substr(last, 4) == "\x1b[0m", line);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_drawn_is_nothing) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN(), endless = std::numeric_limits<double>::infinity();
  BOOST_TEST(draw_points({}, "x", "y", {}) == "");
  BOOST_TEST(draw_points({{none, 1, true}, {1, endless, true}, {0, 0, false}}, "x", "y", {}) == "");
  BOOST_TEST(draw_ranges({{"a", 0, 0, 0, 0}, {"b", none, none, none, none}}, {}) == "");
}
