// Programs that a test starts, watches and kills.
#pragma once
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/program.hpp"

namespace support {

// The command in a process group of its own, so that a test can kill what it likes of it.
inline pid_t start(const std::string& command) {
  const pid_t process = fork();
  if (process == 0) {
    setpgid(0, 0);
    const std::string all = "exec >/dev/null 2>&1; RACKCAST='" RACKCAST_PROGRAM "'; cd '" RACKCAST_SOURCE_DIR "'; " + command;
    execl("/bin/bash", "bash", "-c", all.c_str(), nullptr);
    _exit(127);
  }
  setpgid(process, process);
  return process;
}

inline std::vector<pid_t> children_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/task/" + std::to_string(process) + "/children");
  std::vector<pid_t> all;
  for (pid_t child; file >> child;) all.push_back(child);
  return all;
}

inline std::vector<pid_t> descendants(pid_t process, int levels) {
  std::vector<pid_t> all{process};
  for (int i = 0; i < levels; ++i) {
    std::vector<pid_t> next;
    for (const pid_t one : all)
      for (const pid_t child : children_of(one)) next.push_back(child);
    all = next;
  }
  return all;
}

// Waits for the end; after so many seconds kills its whole group. True: it ended by itself.
inline bool ended_within(pid_t process, double seconds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < limit) {
    if (waitpid(process, nullptr, WNOHANG) == process) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(-process, SIGKILL);
  waitpid(process, nullptr, 0);
  return false;
}

inline void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace support
