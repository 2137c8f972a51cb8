// A progress bar with an estimate of the time left, on stderr when that is a terminal and silent otherwise.
#pragma once
#include <chrono>
#include <string>

namespace rackcast {

class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // share in [0, 1]; note stands behind the bar. Cheap: draws at most ten times a second.
  void update(double share, const std::string& note = {});

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  Clock::time_point start_ = Clock::now(), drawn_{};
  bool terminal_ = false, shown_ = false;
};

}  // namespace rackcast
