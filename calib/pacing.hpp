// Keeps the power cap of one point out of the next, and out of a point's own samples. A GPU under its cap lowers the clock
// some tens of milliseconds after heavy work began and needs some tenths of a second of rest to raise it again (one H200:
// full clock for 60 ms of fp8 products, then 75%; 200 ms to recover). So samples are taken in short bursts from rest, and
// a burst that ended with a lowered clock does not count. Owns no clock, no GPU.
#pragma once
#include <functional>
#include <optional>

namespace rackcast::calib {

struct PaceLimits {
  double burst_us = 25e3;   // busy time of a burst
  double rest_ms = 400;     // longest wait for the clock
  double poll_ms = 5;
  double lost_ms = 200;     // least rest after a burst that did not count: the clock is back before the cap's memory is empty
  double share = 0.985;     // of the best clock: one step below it (1,965 of 1,980 MHz) is still full
  int lost_bursts = 4;      // after these, lowered clocks are the point's own: everything counts
};

class Pacer {
 public:
  using Read = std::function<std::optional<int>()>;  // SM clock in MHz; absent: no pacing
  using Rest = std::function<void(double ms)>;
  Pacer(const PaceLimits& limits, int best_mhz, Read read, Rest rest)
      : limits_(limits), best_mhz_(best_mhz), read_(std::move(read)), rest_(std::move(rest)) {}

  void begin_point();   // rests until the clock is back
  // After a burst. False: its samples ran at a lowered clock, take them again.
  bool burst_counts();
  double burst_us() const { return burst_us_; }
  bool gave_up() const { return lost_ > limits_.lost_bursts; }  // the point's samples hold lowered clocks

 private:
  bool full(int mhz) const { return mhz >= limits_.share * best_mhz_; }
  void rest_until_full();
  PaceLimits limits_;
  int best_mhz_;
  Read read_;
  Rest rest_;
  int lost_ = 0;
  int vain_ = 0;  // rests in a row that did not bring the clock back
  double burst_us_ = limits_.burst_us;
};

}  // namespace rackcast::calib
