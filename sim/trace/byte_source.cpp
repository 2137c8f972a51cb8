#include "sim/trace/byte_source.hpp"

#include <zlib.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "sim/base/error.hpp"
#include "sim/base/input.hpp"

namespace rackcast {

// gzread passes plain files through unchanged.
struct ByteSource::Gzip {
  gzFile handle;
  explicit Gzip(const std::string& path) : handle(gzopen(path.c_str(), "rb")) {}
  ~Gzip() {
    if (handle) gzclose(handle);
  }
};

namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 18;

// Recorded loads pack 5 to 50 to 1, gzip at most 1,030 to 1. What packs far better than any load and fills a disk is none.
constexpr std::uint64_t trusted_bytes = std::uint64_t{1} << 30, most_per_packed_byte = 500;

// Eight bytes a step; names a content, guards against nothing.
std::uint64_t hash_bytes(std::uint64_t hash, const char* data, std::size_t size) {
  constexpr std::uint64_t odd = 0x9E3779B97F4A7C15;
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, data, 8);
    hash = std::rotl((hash ^ word) * odd, 29);
  }
  for (; size > 0; ++data, --size) hash = std::rotl((hash ^ static_cast<unsigned char>(*data)) * odd, 29);
  return hash;
}

}  // namespace

ByteSource::ByteSource(const std::string& path) : name_(path) {
  if (std::error_code error; std::filesystem::is_directory(path, error)) fail("", "is a folder, not a file");
  check_input_path(path);
  file_ = std::make_unique<Gzip>(path);
  if (!file_->handle) throw UserError(path, 0, 0, "", std::string("cannot be read: ") + std::strerror(errno));
  gzbuffer(file_->handle, buffer_bytes);
  buffer_.resize(buffer_bytes);
  begin_ = at_ = limit_ = buffer_.data();
}

ByteSource::ByteSource(std::string name, std::string_view text) : name_(std::move(name)), buffer_(text.begin(), text.end()) {
  begin_ = at_ = buffer_.data();
  limit_ = begin_ + buffer_.size();
  hash_ = hash_bytes(hash_, begin_, buffer_.size());
}

ByteSource::~ByteSource() = default;

bool ByteSource::refill() {
  if (!file_) return false;
  before_buffer_ = consumed();
  const int got = gzread(file_->handle, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  begin_ = at_ = limit_ = buffer_.data();
  int code = Z_OK;
  const char* message = gzerror(file_->handle, &code);
  if (got < 0 || code == Z_BUF_ERROR || code == Z_DATA_ERROR) fail("", std::string("damaged or cut gzip data (") + message + ")");
  limit_ += got;
  hash_ = hash_bytes(hash_, begin_, static_cast<std::size_t>(got));
  const std::uint64_t unpacked = before_buffer_ + static_cast<std::uint64_t>(got);
  if (unpacked > trusted_bytes && unpacked / most_per_packed_byte > static_cast<std::uint64_t>(gzoffset(file_->handle)))
    fail("", "unpacks to over 1 GiB and over 500 times its size; a trace does not");
  return got > 0;
}

void ByteSource::fail(const std::string& key, const std::string& rule) const {
  throw UserError(name_, line_, column(), key, rule);
}

}  // namespace rackcast
