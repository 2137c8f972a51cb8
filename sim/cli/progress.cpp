#include "sim/cli/progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace rackcast {

Progress::Progress(std::string label) : label_(std::move(label)), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

static std::string left(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f} s left", seconds);
  if (seconds < 3600) return fmt::format("{:.0f} min left", seconds / 60);
  return fmt::format("{:.1f} h left", seconds / 3600);
}

void Progress::update(double share, const std::string& note) {
  if (!terminal_) return;
  const Clock::time_point now = Clock::now();
  if (now - drawn_ < std::chrono::milliseconds(100) && share < 1) return;
  drawn_ = now;
  shown_ = true;
  constexpr int bar_width = 30;
  share = std::clamp(share, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(share * bar_width);
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const std::string eta = share > 0.01 && elapsed > 1 ? left(elapsed * (1 - share) / share) : "";
  fmt::print(stderr, "\r\x1b[K{} [{}{}] {:3.0f}%  {}  {}", label_, std::string(filled, '#'), std::string(bar_width - filled, ' '), 100 * share, eta, note);
  std::fflush(stderr);
}

}  // namespace rackcast
