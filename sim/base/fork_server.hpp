// Runs each task in a process of its own, forked from a server process that was itself forked early: what the server
// has loaded is shared by all tasks, copy on write, and what a task does (crash, hang, eat memory, start an engine that
// can start only once) stays in its process. Whoever owns the server may open databases or start MPI afterwards: tasks
// never see them. When the owner dies, the server and its tasks die with it.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/base/frames.hpp"

namespace rackcast {

struct TaskLimits {
  double time_s = 0;              // wall time; 0: none
  std::uint64_t memory_bytes = 0;  // that the task may take on top of what it shares; 0: none
};

struct TaskOutcome {
  // refused: the task threw UserError; failed: another exception; the rest speak for themselves.
  enum class Kind { done, refused, failed, crashed, out_of_time, out_of_memory };
  std::uint64_t id = 0;
  Kind kind = Kind::done;
  Fields fields;        // what a done task gave
  std::string error;    // of any other
  double seconds = 0;   // wall time of its process
  std::uint64_t peak_bytes = 0;  // resident, shared pages included
};

class ForkServer {
 public:
  using Task = std::function<Fields()>;
  // Runs in the server: reads the request, loads what this and later tasks share, returns what to run in the fork.
  using Prepare = std::function<Task(const Fields& request)>;

  explicit ForkServer(const Prepare& prepare);
  ~ForkServer();  // kills what still runs
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  void submit(std::uint64_t id, const Fields& request, const TaskLimits& limits);  // starts at once
  std::optional<TaskOutcome> wait(double seconds);  // the next to end; nothing when none does in that time
  std::size_t running() const { return running_; }
  pid_t process() const { return server_; }

 private:
  void read_some();

  pid_t server_ = -1;
  int socket_ = -1;
  FrameReader inbox_;
  std::size_t running_ = 0;
};

// For sending outcomes on (MPI).
Fields fields_of(const TaskOutcome& outcome);
TaskOutcome outcome_of(const Fields& fields);

}  // namespace rackcast
