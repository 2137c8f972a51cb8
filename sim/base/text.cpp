#include "sim/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace rackcast {

// Insertions, deletions, replacements and swaps of neighbours cost 1 each.
static std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last.back();
}

std::string near_match(std::string_view given, const std::vector<std::string>& known) {
  if (given.empty() || given.size() > 64) return {};
  std::size_t best = 65;
  const std::string* name = nullptr;
  for (const std::string& candidate : known) {
    if (candidate.size() > 64) continue;
    const std::size_t distance = edit_distance(given, candidate);
    const std::size_t limit = std::max<std::size_t>(1, std::max(given.size(), candidate.size()) / 3);
    if (distance <= limit && distance < best) {
      best = distance;
      name = &candidate;
    }
  }
  return name == nullptr ? std::string{} : fmt::format("did you mean '{}'?", *name);
}

// What a number may not look like, whatever its type; empty when it may be one.
static std::string not_a_number(std::string_view text, const char* wanted) {
  if (text.empty()) return fmt::format("is empty, expected {}", wanted);
  const std::string_view digits = text.front() == '-' ? text.substr(1) : text;
  const bool digit_first = !digits.empty() && ((digits[0] >= '0' && digits[0] <= '9') || digits[0] == '.');
  if (!digit_first) return fmt::format("is not {}", wanted);
  if (digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9')
    return "starts with 0, which YAML reads as octal: drop the leading zeros";
  return {};
}

template <class T>
static Parsed<T> parse_number(std::string_view text, const char* wanted) {
  Parsed<T> result;
  result.error = not_a_number(text, wanted);
  if (!result.error.empty()) return result;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), result.value);
  if (code == std::errc::result_out_of_range)
    result.error = "is out of range";
  else if (code != std::errc{} || end != text.data() + text.size())
    result.error = fmt::format("is not {}", wanted);
  return result;
}

Parsed<double> parse_double(std::string_view text) { return parse_number<double>(text, "a number"); }
Parsed<std::int64_t> parse_int64(std::string_view text) { return parse_number<std::int64_t>(text, "a whole number"); }
Parsed<std::uint64_t> parse_uint64(std::string_view text) {
  if (!text.empty() && text.front() == '-') return {0, "is negative"};
  return parse_number<std::uint64_t>(text, "a whole number");
}

std::string shortest(double value) { return fmt::format("{}", value); }

// Length of the UTF-8 sequence at `at`, or 0 when it is none.
static std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : '\0'); };
  const unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xC0U) != 0x80U) return 0;
  const unsigned second = byte(at + 1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool beyond = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);  // surrogates, > U+10FFFF
  return overlong || beyond ? 0 : length;
}

std::size_t first_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

std::string quote_input(std::string_view text) {
  constexpr std::size_t limit = 60;
  std::string out = "'";
  std::size_t i = 0;
  while (i < text.size() && out.size() < limit) {
    const std::size_t length = utf8_length(text, i);
    const auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
      ++i;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  return out + (i < text.size() ? "...'" : "'");
}

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace rackcast
