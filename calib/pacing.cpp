#include "calib/pacing.hpp"

#include <algorithm>

namespace rackcast::calib {

void Pacer::rest_until_full() {
  int highest = 0;
  for (double waited = 0;; waited += limits_.poll_ms) {
    const std::optional<int> mhz = read_();
    if (!mhz) return;
    highest = std::max(highest, *mhz);
    if (full(*mhz)) {
      vain_ = 0;
      return;
    }
    if (waited >= limits_.rest_ms) break;
    rest_(limits_.poll_ms);
  }
  // A clock that an operator has locked below the best one never comes back: what rest brings is then the best there is.
  if (++vain_ >= 3) best_mhz_ = highest, vain_ = 0;
}

void Pacer::begin_point() {
  lost_ = 0;
  burst_us_ = limits_.burst_us;
  rest_until_full();
}

bool Pacer::burst_counts() {
  const std::optional<int> mhz = read_();
  if (!mhz || full(*mhz) || gave_up()) return true;
  ++lost_;
  if (gave_up()) return true;
  burst_us_ = std::max(burst_us_ / 2, limits_.burst_us / 8);
  rest_(limits_.lost_ms);
  rest_until_full();
  return false;
}

}  // namespace rackcast::calib
