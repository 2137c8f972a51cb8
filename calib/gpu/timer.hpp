// Times a prepared case by replaying a CUDA graph of many launches between two events.
// cold: the launches walk through all working sets; hot: they repeat set 0. Subtracts nothing. Samples come in bursts from
// a rested clock (pacing.hpp), so that neither the point before nor the power cap lowers them; what the cap leaves of the
// rate is time_sustained's answer.
#pragma once
#include <string>
#include <vector>

#include "calib/pacing.hpp"
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
  int launches = 0;     // in one replay
  bool capped = false;  // samples hold clocks lowered by the power cap: the point cannot run without
};

Timing time_case(kernels::Case& one, bool cold, const TimerOptions& options, Pacer& pacer, kernels::Stream stream);

// Back to back for `seconds`; samples of the second half.
Timing time_sustained(kernels::Case& one, double seconds, const TimerOptions& options, kernels::Stream stream);

// Sleeps on the host and has the GPU count its own clock. best_mhz: what NVML says the GPU can; 0: what the first reading finds.
Pacer gpu_pacer(int best_mhz, kernels::Stream stream);

// The GPU of this process. Unavailable without a driver or a GPU.
kernels::GpuEnvironment open_gpu(int device);

}  // namespace rackcast::calib
