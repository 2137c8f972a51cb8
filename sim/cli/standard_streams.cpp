#include "sim/cli/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <initializer_list>

namespace rackcast {

static ssize_t write_or_drop(void*, const char* text, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = ::write(STDERR_FILENO, text + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(size);
}

void secure_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) == -1 && errno == EBADF)
      if (::open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY) == -1) return;  // takes the lowest free number, this one
  cookie_io_functions_t functions{};
  functions.write = write_or_drop;
  std::FILE* const notes = ::fopencookie(nullptr, "w", functions);
  if (notes == nullptr) return;
  std::setvbuf(notes, nullptr, _IONBF, 0);
  stderr = notes;  // glibc lets it be replaced
}

}  // namespace rackcast
