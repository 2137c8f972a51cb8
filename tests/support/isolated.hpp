// Runs a function in a forked process and brings its numbers back: SimGrid allows one engine in a process.
// The child's exception, signal or silence becomes a std::runtime_error here. Checks belong in the parent.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace rackcast::test {

inline std::string isolated_text(const std::function<std::string()>& body, unsigned limit_s = 300) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    close(ends[0]);
    // The test framework's handlers would report the child's death as the parent's.
    for (const int signal_number : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGALRM}) std::signal(signal_number, SIG_DFL);
    alarm(limit_s);
    std::string text;
    int status = 0;
    try {
      text = body();
    } catch (const std::exception& error) {
      text = error.what();
      status = 1;
    }
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t count = write(ends[1], text.data() + sent, text.size() - sent);
      if (count <= 0) _exit(2);
      sent += static_cast<std::size_t>(count);
    }
    _exit(status);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) throw std::runtime_error("child died of signal " + std::to_string(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) throw std::runtime_error(text.empty() ? "child failed silently" : text);
  return text;
}

inline std::vector<double> isolated(const std::function<std::vector<double>()>& body, unsigned limit_s = 300) {
  const std::string bytes = isolated_text(
      [&] {
        const std::vector<double> numbers = body();
        return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
      },
      limit_s);
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(double));
  return numbers;
}

}  // namespace rackcast::test
