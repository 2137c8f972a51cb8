#include "sim/base/fork_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/sanitizer.hpp"

namespace rackcast {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) ::_exit(0);  // the other side is gone: nobody waits for us
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

// False at the end of the stream.
bool read_into(int descriptor, FrameReader& reader) {
  char buffer[1 << 16];
  const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  reader.add({buffer, static_cast<std::size_t>(count)});
  return count > 0;
}

std::uint64_t address_space_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void limit_memory(std::uint64_t extra_bytes) {
#if RACKCAST_ASAN
  extra_bytes = 0;  // the sanitizer reserves terabytes of addresses
#endif
  if (extra_bytes == 0) return;
  const rlim_t most = address_space_bytes() + extra_bytes;
  const rlimit limit{most, most};
  ::setrlimit(RLIMIT_AS, &limit);
}

constexpr std::string_view done_mark = "done", refused_mark = "refused", failed_mark = "failed", memory_mark = "memory";

// The task's process: one frame out, [mark, fields or error...].
[[noreturn]] void run_task(const ForkServer::Task& task, int out, const TaskLimits& limits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::ofstream("/proc/self/oom_score_adj") << 500;  // before the sweep itself
  limit_memory(limits.memory_bytes);
  Fields answer;
  try {
    answer = task();
    answer.insert(answer.begin(), std::string(done_mark));
  } catch (const UserError& error) {
    answer = {std::string(refused_mark), error.what()};
  } catch (const std::bad_alloc&) {
    write_all(out, pack({std::string(memory_mark)}));
    ::_exit(0);
  } catch (const std::exception& error) {
    answer = {std::string(failed_mark), error.what()};
  }
  write_all(out, pack(answer));
  ::_exit(0);
}

struct Running {
  std::uint64_t id = 0;
  pid_t process = -1;
  int pipe = -1;
  double started_s = 0;
  TaskLimits limits;
  FrameReader output;
  bool killed_for_time = false;
};

class Server {
 public:
  Server(const ForkServer::Prepare& prepare, int socket) : prepare_(prepare), socket_(socket) {}

  [[noreturn]] void run() {
    for (;;) {
      std::vector<pollfd> waits{{socket_, POLLIN, 0}};
      for (const Running& task : tasks_) waits.push_back({task.pipe, POLLIN, 0});
      ::poll(waits.data(), waits.size(), milliseconds_to_deadline());
      if (waits[0].revents != 0 && !read_into(socket_, inbox_)) leave();
      for (std::size_t i = waits.size(); i-- > 1;)
        if (waits[i].revents != 0 && !read_into(tasks_[i - 1].pipe, tasks_[i - 1].output)) reap(i - 1);
      kill_late_ones();
      while (const auto body = inbox_.take()) start(unpack(*body));
    }
  }

 private:
  [[noreturn]] void leave() {
    for (const Running& task : tasks_) ::kill(task.process, SIGKILL);
    ::_exit(0);
  }

  int milliseconds_to_deadline() const {
    double wait = -1;
    for (const Running& task : tasks_) {
      if (task.limits.time_s <= 0 || task.killed_for_time) continue;
      const double left = std::max(0.0, task.started_s + task.limits.time_s - now_s());
      wait = wait < 0 ? left : std::min(wait, left);
    }
    return wait < 0 ? -1 : static_cast<int>(std::min(1e6, std::ceil(wait * 1e3)));
  }

  void kill_late_ones() {
    for (Running& task : tasks_) {
      if (task.limits.time_s <= 0 || task.killed_for_time || now_s() < task.started_s + task.limits.time_s) continue;
      task.killed_for_time = true;
      ::kill(task.process, SIGKILL);
    }
  }

  void start(Fields request) {
    Running task;
    task.id = uint64_of(request.at(0));
    task.limits = {double_of(request.at(1)), uint64_of(request.at(2))};
    task.started_s = now_s();
    request.erase(request.begin(), request.begin() + 3);
    ForkServer::Task body;
    try {
      body = prepare_(request);
    } catch (const UserError& error) {
      return tell({task.id, TaskOutcome::Kind::refused, {}, error.what(), now_s() - task.started_s, 0});
    } catch (const std::exception& error) {
      return tell({task.id, TaskOutcome::Kind::failed, {}, error.what(), now_s() - task.started_s, 0});
    }
    int ends[2];
    const bool piped = ::pipe2(ends, O_CLOEXEC) == 0;
    if (piped) task.process = ::fork();
    if (!piped || task.process < 0)
      return tell({task.id, TaskOutcome::Kind::failed, {}, fmt::format("no new process: {}", std::strerror(errno)), 0, 0});
    if (task.process == 0) {
      ::close(ends[0]);
      ::close(socket_);
      for (const Running& other : tasks_) ::close(other.pipe);
      run_task(body, ends[1], task.limits);
    }
    ::close(ends[1]);
    task.pipe = ends[0];
    tasks_.push_back(std::move(task));
  }

  void reap(std::size_t index) {
    Running task = std::move(tasks_[index]);
    tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(index));
    ::close(task.pipe);
    int status = 0;
    rusage usage{};
    while (::wait4(task.process, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    TaskOutcome outcome{task.id, TaskOutcome::Kind::crashed, {}, {}, now_s() - task.started_s,
                        static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
    const auto body = task.output.take();
    if (body) {
      outcome.fields = unpack(*body);
      const std::string mark = outcome.fields.at(0);
      outcome.fields.erase(outcome.fields.begin());
      if (mark == done_mark) {
        outcome.kind = TaskOutcome::Kind::done;
      } else if (mark == memory_mark) {
        outcome.kind = TaskOutcome::Kind::out_of_memory;
        outcome.error = fmt::format("needs more than its limit of {} bytes of memory", task.limits.memory_bytes);
      } else {
        outcome.kind = mark == refused_mark ? TaskOutcome::Kind::refused : TaskOutcome::Kind::failed;
        outcome.error = outcome.fields.at(0);
        outcome.fields.clear();
      }
    } else if (task.killed_for_time) {
      outcome.kind = TaskOutcome::Kind::out_of_time;
      outcome.error = fmt::format("ran longer than its limit of {} s", task.limits.time_s);
    } else if (WIFSIGNALED(status)) {
      outcome.error = fmt::format("died of signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
      outcome.error = fmt::format("ended with status {} and no result", WEXITSTATUS(status));
    }
    tell(outcome);
  }

  void tell(const TaskOutcome& outcome) { write_all(socket_, pack(fields_of(outcome))); }

  const ForkServer::Prepare& prepare_;
  int socket_;
  FrameReader inbox_;
  std::vector<Running> tasks_;
};

}  // namespace

Fields fields_of(const TaskOutcome& outcome) {
  Fields fields{to_bytes(outcome.id), to_bytes(static_cast<std::uint64_t>(outcome.kind)), outcome.error,
                to_bytes(outcome.seconds), to_bytes(outcome.peak_bytes)};
  fields.insert(fields.end(), outcome.fields.begin(), outcome.fields.end());
  return fields;
}

TaskOutcome outcome_of(const Fields& fields) {
  TaskOutcome outcome{uint64_of(fields.at(0)), static_cast<TaskOutcome::Kind>(uint64_of(fields.at(1))), {}, fields.at(2),
                      double_of(fields.at(3)), uint64_of(fields.at(4))};
  outcome.fields.assign(fields.begin() + 5, fields.end());
  return outcome;
}

ForkServer::ForkServer(const Prepare& prepare) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Unavailable(fmt::format("no socket for the worker server: {}", std::strerror(errno)));
  const pid_t owner = ::getpid();
  std::fflush(nullptr);
  server_ = ::fork();
  if (server_ < 0) throw Unavailable(fmt::format("no process for the worker server: {}", std::strerror(errno)));
  if (server_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != owner) ::_exit(0);
    for (const int number : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGALRM, SIGCHLD}) std::signal(number, SIG_DFL);
    std::signal(SIGPIPE, SIG_IGN);
    ::close(ends[0]);
    Server(prepare, ends[1]).run();
  }
  ::close(ends[1]);
  socket_ = ends[0];
}

ForkServer::~ForkServer() {
  ::close(socket_);
  ::kill(server_, SIGKILL);
  while (::waitpid(server_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ForkServer::read_some() {
  if (!read_into(socket_, inbox_)) throw std::runtime_error("the worker server died; start again to run the rest");
}

void ForkServer::submit(std::uint64_t id, const Fields& request, const TaskLimits& limits) {
  Fields fields{to_bytes(id), to_bytes(limits.time_s), to_bytes(limits.memory_bytes)};
  fields.insert(fields.end(), request.begin(), request.end());
  const std::string bytes = pack(fields);
  for (std::string_view rest = bytes; !rest.empty();) {
    pollfd wait{socket_, POLLIN | POLLOUT, 0};
    ::poll(&wait, 1, -1);
    if ((wait.revents & POLLIN) != 0) read_some();  // else both sides could wait for the other to read
    if ((wait.revents & POLLOUT) == 0) continue;
    const ssize_t count = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) rest.remove_prefix(static_cast<std::size_t>(count));
    else if (errno != EAGAIN && errno != EINTR) throw std::runtime_error("the worker server died; start again to run the rest");
  }
  ++running_;
}

std::optional<TaskOutcome> ForkServer::wait(double seconds) {
  const double until = now_s() + seconds;
  for (;;) {
    if (const auto body = inbox_.take()) {
      --running_;
      return outcome_of(unpack(*body));
    }
    const double left = std::max(0.0, until - now_s());
    pollfd wait{socket_, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(std::min(1e6, std::ceil(left * 1e3)))) > 0) read_some();
    else if (left <= 0) return std::nullopt;
  }
}

}  // namespace rackcast
