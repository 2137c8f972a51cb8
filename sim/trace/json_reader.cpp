#include "sim/trace/json_reader.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

namespace rackcast {

int JsonReader::peek_value() {
  int c = source_.peek();
  while (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
    source_.get();
    c = source_.peek();
  }
  return c;
}

void JsonReader::fail(const std::string& rule) const { fail(key_, rule); }

void JsonReader::fail(std::string_view key, const std::string& rule) const {
  std::string path;
  for (const std::string& part : path_) path += (path.empty() || part.front() == '[' ? "" : ".") + part;
  if (!key.empty()) path += (path.empty() ? "" : ".") + std::string(key);
  source_.fail(path, rule);
}

void JsonReader::expect(char c, const char* what) {
  const int found = peek_value();
  if (found != c) {
    const std::string seen = found == ByteSource::end ? "the file ends here"
                             : found < 32 || found > 126 ? fmt::format("found byte 0x{:02x}", found)
                                                         : fmt::format("found '{}'", static_cast<char>(found));
    fail(fmt::format("expected {}, {}", what, seen));
  }
  source_.get();
}

void JsonReader::enter() {
  if (fresh_.size() >= max_depth) fail(fmt::format("nested deeper than {} levels", max_depth));
  fresh_.push_back(true);
}

void JsonReader::begin_object() {
  expect('{', "an object '{...}'");
  enter();
}

void JsonReader::begin_array() {
  expect('[', "a list '[...]'");
  enter();
}

bool JsonReader::next_key() {
  if (peek_value() == '}') {
    source_.get();
    fresh_.pop_back();
    key_.clear();
    return false;
  }
  if (!fresh_.back()) {
    expect(',', "',' or '}'");
    peek_value();
  }
  fresh_.back() = false;
  key_.clear();
  if (source_.peek() != '"') fail("expected a quoted key");
  read_string(key_);
  expect(':', "':' after the key");
  return true;
}

bool JsonReader::next_element() {
  if (peek_value() == ']') {
    source_.get();
    fresh_.pop_back();
    return false;
  }
  if (!fresh_.back()) expect(',', "',' or ']'");
  fresh_.back() = false;
  return true;
}

bool JsonReader::next_integer(std::uint64_t& value, std::uint64_t max) {
  // "[1,2,3" or "[1, 2, 3" wholly at hand; anything else takes the long way.
  const std::string_view window = source_.window();
  std::size_t at = 0;
  bool plain = window.size() > 24;
  if (plain && !fresh_.back()) plain = window[at++] == ',';
  if (plain && window[at] == ' ') ++at;
  const std::size_t first = at;
  std::uint64_t number = 0;
  for (; plain && at < first + 18 && window[at] >= '0' && window[at] <= '9'; ++at) number = number * 10 + static_cast<std::uint64_t>(window[at] - '0');
  if (plain && at > first && (window[at] == ',' || window[at] == ']') && number <= max) {
    source_.skip(at);
    fresh_.back() = false;
    value = number;
    return true;
  }
  if (!next_element()) return false;
  value = integer(max);
  return true;
}

double JsonReader::number() {
  char digits[48];
  std::size_t length = 0;
  peek_value();
  for (int c = source_.peek(); (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
       c = source_.peek()) {
    if (length == sizeof digits) fail("number is longer than 48 characters");
    digits[length++] = static_cast<char>(c);
    source_.skip(1);
  }
  if (length == 0) fail("expected a number");
  double value = 0;
  const auto [stop, error] = std::from_chars(digits, digits + length, value);
  if (error != std::errc() || stop != digits + length || !std::isfinite(value))
    fail(fmt::format("'{}' is not a finite number", std::string_view(digits, length)));
  return value;
}

std::uint64_t JsonReader::integer(std::uint64_t max) {
  // The common case, all digits at hand, without a detour over double.
  peek_value();
  const std::string_view window = source_.window();
  std::uint64_t value = 0;
  std::size_t length = 0;
  while (length < window.size() && length < 18 && window[length] >= '0' && window[length] <= '9')
    value = value * 10 + static_cast<std::uint64_t>(window[length++] - '0');
  const bool ends = length > 0 && length < window.size() && std::strchr(",]} \n\r\t", window[length]) != nullptr;
  if (ends) {
    source_.skip(length);
  } else {
    const double real = number();
    if (real < 0 || real != std::floor(real) || real > 9e15) fail(fmt::format("{} is not a whole number from 0", real));
    value = static_cast<std::uint64_t>(real);
  }
  if (value > max) fail(fmt::format("{} is larger than {}", value, max));
  return value;
}

const std::string& JsonReader::string() {
  if (peek_value() != '"') fail("expected a quoted string");
  read_string(text_);
  return text_;
}

// Escapes other than \uXXXX are decoded; \u is kept as written (names here are only compared and shown).
void JsonReader::read_string(std::string& into) {
  into.clear();
  source_.get();
  while (true) {
    const int c = source_.get();
    if (c == ByteSource::end) fail("the file ends inside a string");
    if (c == '"') return;
    if (c < 32) fail("control character inside a string");
    if (into.size() >= max_string) fail(fmt::format("string is longer than {} bytes", max_string));
    if (c != '\\') {
      into += static_cast<char>(c);
      continue;
    }
    const int escaped = source_.get();
    switch (escaped) {
      case '"': case '\\': case '/': into += static_cast<char>(escaped); break;
      case 'n': into += '\n'; break;
      case 't': into += '\t'; break;
      case 'r': into += '\r'; break;
      case 'b': into += '\b'; break;
      case 'f': into += '\f'; break;
      case 'u': into += "\\u"; break;
      default: fail("unknown escape in a string");
    }
  }
}

void JsonReader::skip_string() {
  source_.get();
  while (true) {
    const std::string_view window = source_.window();
    if (window.empty()) fail("the file ends inside a string");
    std::size_t i = 0;
    while (i < window.size() && window[i] != '"' && window[i] != '\\' && static_cast<unsigned char>(window[i]) >= 32) ++i;
    source_.skip(i);
    if (i == window.size()) continue;
    const int c = source_.get();
    if (c == '"') return;
    if (c != '\\') fail("control character inside a string");
    if (source_.get() == ByteSource::end) fail("the file ends inside a string");
  }
}

void JsonReader::skip_word(const char* word) {
  for (const char* c = word; *c; ++c)
    if (source_.get() != *c) fail("expected a value");
}

bool JsonReader::null() {
  if (peek_value() != 'n') return false;
  skip_word("null");
  return true;
}

void JsonReader::skip() {
  switch (peek_value()) {
    case '{': {
      const std::string outer = key_;
      begin_object();
      while (next_key()) skip();
      key_ = outer;
      return;
    }
    case '[':
      begin_array();
      while (next_element()) skip();
      return;
    case '"': return skip_string();
    case 't': return skip_word("true");
    case 'f': return skip_word("false");
    case 'n': return skip_word("null");
    default: number();
  }
}

bool JsonReader::at_end() { return peek_value() == ByteSource::end; }

}  // namespace rackcast
