// Times a prepared case by replaying a CUDA graph of many launches between two events.
// cold: the launches walk through all working sets; hot: they repeat set 0. Subtracts nothing.
#pragma once
#include <string>
#include <vector>

#include "calib/stopping_rule.hpp"
#include "kernels/device.hpp"

namespace rackcast::calib {

struct TimerOptions {
  StoppingLimits limits;
  double replay_us = 200;   // at least this long between the two events
  int max_launches = 512;
  double warm_us = 2000;    // replays before the first sample
};

struct Timing {
  Summary summary;
  int launches = 0;  // in one replay
};

Timing time_case(kernels::Case& one, bool cold, const TimerOptions& options, kernels::Stream stream);

// The GPU of this process. Unavailable without a driver or a GPU.
kernels::GpuEnvironment open_gpu(int device);

}  // namespace rackcast::calib
