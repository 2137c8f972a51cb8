// Small text helpers: near matches for error messages, strict numbers, shortest numbers, safe quoting of input.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rackcast {

// "did you mean 'x'?" or empty: smallest edit distance, at most a third of the longer word (and at least 1).
std::string near_match(std::string_view given, const std::vector<std::string>& known);

// A value, or why it is none. Numbers are decimal; no leading zeros (YAML's octal), no hex, no inf or nan, no "+",
// no blanks around.
template <class T>
struct Parsed {
  T value{};
  std::string error;  // empty: value holds
  explicit operator bool() const { return error.empty(); }
};
Parsed<double> parse_double(std::string_view text);
Parsed<std::int64_t> parse_int64(std::string_view text);
Parsed<std::uint64_t> parse_uint64(std::string_view text);

// The shortest decimal that reads back to the same double.
std::string shortest(double value);

// For messages: at most 60 bytes of the input in single quotes, control bytes and invalid UTF-8 as \xNN.
std::string quote_input(std::string_view text);

// Byte offset of the first byte that is not valid UTF-8, or npos.
std::size_t first_invalid_utf8(std::string_view text);

std::string_view trim(std::string_view text);

}  // namespace rackcast
