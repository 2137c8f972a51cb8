// The clock that the multiprocessors run at now, counted by one of them. NVML's figure lags by about a tenth of a second,
// which is longer than a burst of samples.
#pragma once
#include "kernels/device.hpp"

namespace rackcast::kernels {

class ClockProbe {
 public:
  ClockProbe() : out_(2) {}
  int mhz(Stream stream);  // after the stream's work so far; takes 0.1 ms

 private:
  DeviceBuffer<unsigned long long> out_;
};

}  // namespace rackcast::kernels
