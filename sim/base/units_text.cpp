#include "sim/base/units_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/base/error.hpp"

namespace rackcast {

namespace {

struct Unit {
  std::string_view name;
  double factor;
  Dimension dimension;
  bool written = true;  // false: read, but never chosen by the writer
};

constexpr Dimension none{}, time{1}, bytes{0, 1}, flops{0, 0, 1}, flops_rate{-1, 0, 1}, dollars{0, 0, 0, 1},
    energy{0, 0, 0, 0, 1}, power{-1, 0, 0, 0, 1};

constexpr Unit numerators[] = {
    {"", 1, none},
    {"s", 1, time}, {"ms", 1e-3, time}, {"us", 1e-6, time}, {"ns", 1e-9, time}, {"min", 60, time}, {"h", 3600, time},
    {"B", 1, bytes}, {"KiB", 0x1p10, bytes}, {"MiB", 0x1p20, bytes}, {"GiB", 0x1p30, bytes}, {"TiB", 0x1p40, bytes},
    {"KB", 1e3, bytes}, {"kB", 1e3, bytes, false}, {"MB", 1e6, bytes}, {"GB", 1e9, bytes}, {"TB", 1e12, bytes},
    {"bit", 0.125, bytes, false}, {"Kbit", 125, bytes, false}, {"Mbit", 125e3, bytes, false},
    {"Gbit", 125e6, bytes, false}, {"Tbit", 125e9, bytes, false},
    {"flop", 1, flops}, {"Gflop", 1e9, flops}, {"Tflop", 1e12, flops}, {"Pflop", 1e15, flops},
    {"FLOPS", 1, flops_rate}, {"GFLOPS", 1e9, flops_rate}, {"TFLOPS", 1e12, flops_rate}, {"PFLOPS", 1e15, flops_rate},
    {"USD", 1, dollars},
    {"J", 1, energy}, {"kJ", 1e3, energy}, {"kWh", 3.6e6, energy, false},
    {"W", 1, power}, {"kW", 1e3, power}, {"MW", 1e6, power, false},
};

// Tokens, requests and steps are counts: dimensionless.
constexpr Unit denominators[] = {
    {"", 1, none}, {"s", 1, time}, {"min", 60, time, false}, {"h", 3600, time},
    {"tok", 1, none, false}, {"Mtok", 1e6, none},
};

constexpr Dimension over(const Dimension& a, const Dimension& b) {
  return {a.time - b.time, a.bytes - b.bytes, a.flops - b.flops, a.dollars - b.dollars, a.energy - b.energy};
}

const Unit* find(std::span<const Unit> table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Unit::name);
  return found == table.end() ? nullptr : &*found;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

struct Spelling {
  std::string text;  // "GB/s"
  double factor;
};

// Every unit of a dimension, the written ones first.
std::vector<Spelling> spellings(const Dimension& dimension, bool written_only) {
  std::vector<Spelling> found;
  for (const Unit& top : numerators)
    for (const Unit& bottom : denominators) {
      if (over(top.dimension, bottom.dimension) != dimension) continue;
      if (top.name.empty() && (bottom.name.empty() || bottom.dimension == none)) continue;
      const bool prices = bottom.name == "Mtok";
      if (written_only && (!top.written || !bottom.written || (prices && top.name != "USD"))) continue;
      if (written_only && top.dimension == flops && !bottom.name.empty()) continue;  // TFLOPS rather than Tflop/s
      const std::string text = bottom.name.empty() ? std::string(top.name) : fmt::format("{}/{}", top.name, bottom.name);
      found.push_back({text, top.factor / bottom.factor});
    }
  return found;
}

// Multiplied in this order by both reader and writer, so that what is written reads back to the same bits.
double scaled(double number, const Unit& top, const Unit& bottom) { return number * top.factor / bottom.factor; }

std::string unknown_unit(std::string_view unit, const Dimension& dimension) {
  std::string names;
  for (const Spelling& s : spellings(dimension, true)) {
    if (equal_ignoring_case(s.text, unit)) return fmt::format("has unknown unit {}: did you mean '{}'?", quote_input(unit), s.text);
    names += (names.empty() ? "" : ", ") + s.text;
  }
  return fmt::format("has unit {} where one of {} is needed", quote_input(unit), names);
}

}  // namespace

Parsed<double> parse_quantity(std::string_view text, const Dimension& dimension) {
  text = trim(text);
  const std::size_t end = std::min(text.find_first_not_of("0123456789.-+"), text.size());
  std::size_t split = end;
  // An exponent belongs to the number: "1e-6 s".
  if (split < text.size() && (text[split] == 'e' || text[split] == 'E') && split > 0) {
    const std::size_t digits = text.find_first_not_of("0123456789+-", split + 1);
    if (split + 1 < text.size() && digits != split + 1) split = std::min(digits, text.size());
  }
  const std::string_view number = text.substr(0, split);
  const std::string_view unit = trim(text.substr(split));
  Parsed<double> result = parse_double(number);
  if (number.empty()) return {0, fmt::format("is not a quantity such as {}", unit_example(dimension))};
  if (!result) return result;
  if (unit.empty()) {
    if (result.value == 0) return result;
    return {0, fmt::format("needs a unit, as in {}", unit_example(dimension))};
  }
  const std::size_t slash = unit.find('/');
  const Unit* top = find(numerators, trim(unit.substr(0, slash)));
  const Unit* bottom = find(denominators, slash == std::string_view::npos ? "" : trim(unit.substr(slash + 1)));
  const bool bare_slash = slash != std::string_view::npos && slash + 1 == unit.size();
  if (top == nullptr || bottom == nullptr || bare_slash || over(top->dimension, bottom->dimension) != dimension)
    return {0, unknown_unit(unit, dimension)};
  result.value = scaled(result.value, *top, *bottom);
  if (!std::isfinite(result.value)) return {0, "is out of range"};
  return result;
}

// Digits count; exponents and numbers far from 1 read badly.
static std::size_t ugliness(const std::string& number, double value) {
  const double magnitude = std::abs(value);
  std::size_t cost = number.size();
  if (number.find('e') != std::string::npos) cost += 20;
  if (magnitude < 0.1 || magnitude >= 10000) cost += 2;
  return cost;
}

std::string format_quantity(double base_units, const Dimension& dimension) {
  if (base_units == 0) return "0";
  std::string best;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const Spelling& s : spellings(dimension, true)) {
    // The quotient may be one bit off; its neighbours at 15 to 17 digits are tried too.
    for (const std::string& number : {fmt::format("{:.15g}", base_units / s.factor), fmt::format("{:.16g}", base_units / s.factor),
                                      shortest(base_units / s.factor)}) {
      const std::string text = fmt::format("{} {}", number, s.text);
      const Parsed<double> back = parse_quantity(text, dimension);
      if (!back || back.value != base_units) continue;
      const std::size_t cost = ugliness(number, base_units / s.factor);
      if (cost < least) {
        least = cost;
        best = text;
      }
      break;
    }
  }
  RACKCAST_CHECK(!best.empty(), "a dimension without units");
  return best;
}

Parsed<Tokens> parse_tokens(std::string_view text) {
  std::int64_t scale = 1;
  std::string_view digits = text;
  if (!digits.empty() && (digits.back() == 'K' || digits.back() == 'M')) {
    scale = digits.back() == 'K' ? 1024 : 1024 * 1024;
    digits = trim(digits.substr(0, digits.size() - 1));
  }
  const Parsed<std::int64_t> number = parse_int64(digits);
  if (!number) return {Tokens{}, scale == 1 ? number.error : "is not a whole number of tokens such as 8192, 16K or 1M"};
  if (std::abs(static_cast<double>(number.value)) > 9e15 / static_cast<double>(scale)) return {Tokens{}, "is out of range"};
  return {Tokens{number.value * scale}, {}};
}

std::string format_tokens(Tokens tokens) {
  constexpr std::int64_t kilo = 1024, mega = kilo * kilo;
  if (tokens.count != 0 && tokens.count % mega == 0) return fmt::format("{}M", tokens.count / mega);
  if (tokens.count != 0 && tokens.count % kilo == 0) return fmt::format("{}K", tokens.count / kilo);
  return fmt::format("{}", tokens.count);
}

std::string unit_example(const Dimension& dimension) {
  if (dimension == time) return "'5 ms'";
  if (dimension == bytes) return "'64 GiB'";
  if (dimension == over(bytes, time)) return "'900 GB/s' (or '400 Gbit/s')";
  if (dimension == flops_rate) return "'2500 TFLOPS'";
  if (dimension == over(dollars, time)) return "'2.31 USD/h'";
  if (dimension == dollars) return "'0.15 USD/Mtok'";
  if (dimension == power) return "'2.1 kW'";
  if (dimension == over(none, time)) return "'20 /s'";
  const std::vector<Spelling> all = spellings(dimension, true);
  return all.empty() ? "a quantity" : fmt::format("'1 {}'", all.front().text);
}

}  // namespace rackcast
