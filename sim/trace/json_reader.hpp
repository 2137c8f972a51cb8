// A pull parser for JSON of any size: the caller asks for what it expects, nothing is built. Depth and string length are
// bounded, so hostile input costs no memory. Every error is a UserError with file, line, column and key path.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/byte_source.hpp"

namespace rackcast {

class JsonReader {
 public:
  explicit JsonReader(ByteSource& source) : source_(source) {}

  // Objects: begin_object(); while (next_key(key)) read or skip the value.
  void begin_object();
  bool next_key();                            // false at '}'
  std::string_view key() const { return key_; }  // of the innermost object, until its value is read
  // Arrays: begin_array(); while (next_element()) read the value.
  void begin_array();
  bool next_element();                        // false at ']'

  bool next_integer(std::uint64_t& value, std::uint64_t max);  // next_element() and integer() at once: long lists of ids

  double number();                            // finite
  std::uint64_t integer(std::uint64_t max);   // whole and not negative ("12" or "12.0")
  const std::string& string();                // valid until the next string() or key
  bool null();                                // consumes null if it is one
  void skip();                                // any value
  bool at_end();                              // only white space is left
  int peek_value();                           // first character of the next value, white space skipped

  // Names the array element or struct in key paths of errors; scoped by the caller.
  void push_path(std::string name) { path_.push_back(std::move(name)); }
  void pop_path() { path_.pop_back(); }
  [[noreturn]] void fail(const std::string& rule) const;
  [[noreturn]] void fail(std::string_view key, const std::string& rule) const;

 private:
  static constexpr int max_depth = 64;
  static constexpr std::size_t max_string = 4096;
  void expect(char c, const char* what);
  void enter();
  void read_string(std::string& into);
  void skip_string();
  void skip_word(const char* word);

  ByteSource& source_;
  std::string key_, text_;
  std::vector<std::string> path_;
  std::vector<bool> fresh_;  // per open object or array: no member read yet
};

}  // namespace rackcast
