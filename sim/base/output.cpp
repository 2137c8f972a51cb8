#include "sim/base/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "sim/base/error.hpp"

namespace fs = std::filesystem;

namespace rackcast {

[[noreturn]] static void refuse(const std::string& path, const std::string& why) { throw UserError(path, 0, 0, "", why); }

// Closes on every way out.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { if (fd_ >= 0) ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool close() { const int fd = fd_; fd_ = -1; return ::close(fd) == 0; }

 private:
  int fd_;
};

static bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void check_output_path(const std::string& path) {
  std::error_code code;
  const fs::file_status status = fs::symlink_status(path, code);
  if (fs::is_symlink(status)) refuse(path, "is a link; output is not written through links");
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse(path, "is not a plain file");
}

void write_output_file(const std::string& path, std::string_view content) {
  check_output_path(path);
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file.get() < 0) refuse(path, fmt::format("cannot be written: {}", std::strerror(errno)));
  if (!write_all(file.get(), content) || !file.close() || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    refuse(path, fmt::format("cannot be written: {}", std::strerror(error)));
  }
}

void refuse_overwriting(const std::string& path, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code code;
    if (fs::equivalent(path, input, code) && !code) refuse(path, "--out is what is read here; name another file");
  }
}

std::string make_output_folder(const std::string& path) {
  std::error_code code;
  const fs::file_status status = fs::symlink_status(path, code);
  if (fs::is_symlink(status)) refuse(path, "is a link; output is not written through links");
  if (fs::exists(status) && !fs::is_directory(status)) refuse(path, "is not a folder");
  fs::create_directories(path, code);
  if (code) refuse(path, fmt::format("cannot be made: {}", code.message()));
  return path;
}

}  // namespace rackcast
