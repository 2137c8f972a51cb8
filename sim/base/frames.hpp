// Lists of byte strings over a pipe or socket: a frame is its length, then each string with its own length.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rackcast {

using Fields = std::vector<std::string>;

std::string pack(const Fields& fields);               // one frame, length included
Fields unpack(std::string_view body);                 // of a frame without its length; InternalError when it is broken

// Bytes as they come in, frames as they get whole.
class FrameReader {
 public:
  void add(std::string_view bytes) { buffer_.append(bytes); }
  std::optional<std::string> take();  // the body of the next whole frame
  bool empty() const { return buffer_.size() == start_; }

 private:
  std::string buffer_;
  std::size_t start_ = 0;
};

std::string to_bytes(double value);
std::string to_bytes(std::uint64_t value);
double double_of(std::string_view bytes);
std::uint64_t uint64_of(std::string_view bytes);

}  // namespace rackcast
