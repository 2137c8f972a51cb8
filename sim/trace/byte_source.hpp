// Bytes of a file, plain or gzip (told apart by content), read front to back through one fixed buffer. Keeps the place
// for error messages and a hash of all that was read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rackcast {

class ByteSource {
 public:
  explicit ByteSource(const std::string& path);          // UserError when it cannot be opened
  ByteSource(std::string name, std::string_view text);   // bytes in memory
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  static constexpr int end = -1;
  int peek() { return at_ < limit_ || refill() ? static_cast<unsigned char>(*at_) : end; }
  int get() {
    const int c = peek();
    if (c == end) return c;
    ++at_;
    if (c == '\n') start_line();
    return c;
  }
  // The bytes at hand, at least one unless at the end; none of skip()ped ones may be a newline.
  std::string_view window() { return peek() == end ? std::string_view{} : std::string_view(at_, static_cast<std::size_t>(limit_ - at_)); }
  void skip(std::size_t count) { at_ += count; }

  int line() const { return line_; }
  int column() const { return static_cast<int>(consumed() - line_start_) + 1; }
  const std::string& name() const { return name_; }
  std::uint64_t content_hash() const { return hash_; }   // of the bytes up to the end of the current buffer
  [[noreturn]] void fail(const std::string& key, const std::string& rule) const;  // UserError here

 private:
  bool refill();
  void start_line() { ++line_; line_start_ = consumed(); }
  std::uint64_t consumed() const { return before_buffer_ + static_cast<std::uint64_t>(at_ - begin_); }

  struct Gzip;
  std::string name_;
  std::unique_ptr<Gzip> file_;
  std::vector<char> buffer_;
  const char* begin_ = nullptr;
  const char* at_ = nullptr;
  const char* limit_ = nullptr;
  std::uint64_t before_buffer_ = 0, line_start_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325;
  int line_ = 1;
};

}  // namespace rackcast
