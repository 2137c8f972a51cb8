#include "sim/base/frames.hpp"

#include <bit>
#include <cstring>

#include "sim/base/error.hpp"

namespace rackcast {
namespace {

void append(std::string& out, std::uint64_t value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }

std::uint64_t read_at(std::string_view bytes, std::size_t at) {
  RACKCAST_CHECK(bytes.size() >= sizeof(std::uint64_t) && at <= bytes.size() - sizeof(std::uint64_t), "a frame is cut short");
  std::uint64_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

std::string pack(const Fields& fields) {
  std::uint64_t size = 0;
  for (const std::string& field : fields) size += sizeof(std::uint64_t) + field.size();
  std::string out;
  out.reserve(size + sizeof size);
  append(out, size);
  for (const std::string& field : fields) {
    append(out, field.size());
    out += field;
  }
  return out;
}

Fields unpack(std::string_view body) {
  Fields fields;
  for (std::size_t at = 0; at < body.size();) {
    const std::uint64_t size = read_at(body, at);
    at += sizeof size;
    RACKCAST_CHECK(size <= body.size() - at, "a frame is cut short");
    fields.emplace_back(body.substr(at, size));
    at += size;
  }
  return fields;
}

std::optional<std::string> FrameReader::take() {
  const std::string_view rest = std::string_view(buffer_).substr(start_);
  if (rest.size() < sizeof(std::uint64_t)) return std::nullopt;
  const std::uint64_t size = read_at(rest, 0);
  if (rest.size() - sizeof size < size) return std::nullopt;
  std::string body(rest.substr(sizeof size, size));
  start_ += sizeof size + size;
  if (start_ == buffer_.size()) {
    buffer_.clear();
    start_ = 0;
  }
  return body;
}

std::string to_bytes(std::uint64_t value) {
  std::string out;
  append(out, value);
  return out;
}
std::string to_bytes(double value) { return to_bytes(std::bit_cast<std::uint64_t>(value)); }
std::uint64_t uint64_of(std::string_view bytes) { return read_at(bytes, 0); }
double double_of(std::string_view bytes) { return std::bit_cast<double>(uint64_of(bytes)); }

}  // namespace rackcast
