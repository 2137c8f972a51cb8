// A window of a run as a trace for ui.perfetto.dev or chrome://tracing (Trace Event Format, JSON): engines' iterations,
// requests with their phases, KV movements, and what else happened. Written while the run goes on, bounded in size.
// Times are microseconds of simulated time since the run's start.
#pragma once
#include <string>
#include <vector>

#include "sim/engine/observer.hpp"
#include "sim/engine/text_file.hpp"

namespace rackcast {

struct EventTraceOptions {
  std::string path;                   // empty: none
  double from_s = 0, to_s = 60;       // since the measured window's start
  std::size_t limit_bytes = 100'000'000;
};

class EventTrace {
 public:
  EventTrace(const EventTraceOptions& options, std::vector<std::string> engine_names);
  void started(const RunLayout& layout);
  void window_opened(double time_s);
  // Each writes what overlaps the window.
  void stepped(const StepEvent& step);
  void moved(const MovementEvent& movement);
  void ended(const Request& request, double time_s) { add_request(request, time_s, true); }
  void unfinished(const Request& request, double time_s) { add_request(request, time_s, false); }
  void noted(const NoteEvent& note);
  void close();
  bool truncated() const { return truncated_; }

 private:
  bool inside(double start_s, double end_s) const { return start_s < to_s_ && end_s >= from_s_; }
  bool room();                        // false, and says so in the file once, when the limit is reached
  void add_request(const Request& request, double time_s, bool finished);
  void name_process(std::uint32_t process, const std::string& name, const char* thread);
  void begin(const char* category, std::uint64_t id, std::uint32_t process, const char* name, double time_s, const std::string& arguments = {});
  void end(const char* category, std::uint64_t id, std::uint32_t process, const char* name, double time_s);

  EventTraceOptions options_;
  TextFile file_;
  std::vector<std::string> names_;
  double from_s_, to_s_;              // of simulated time; nothing is inside before the window opens
  double last_s_ = 0;
  std::uint64_t movements_ = 0;
  bool truncated_ = false, first_ = true;
};

}  // namespace rackcast
