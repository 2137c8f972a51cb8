#include "kernels/clock_probe.hpp"

#include <cmath>

namespace rackcast::kernels {
namespace {

constexpr unsigned long long interval_ns = 60'000;

__device__ unsigned long long now_ns() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

// From one step of the timer to another: it may tick as rarely as every microsecond.
__global__ void count_cycles(unsigned long long* out) {
  const unsigned long long before = now_ns();
  unsigned long long start = before, end;
  while (start == before) start = now_ns();
  const long long cycles = clock64();
  do end = now_ns();
  while (end < start + interval_ns);
  out[0] = static_cast<unsigned long long>(clock64() - cycles);
  out[1] = end - start;
}

}  // namespace

int ClockProbe::mhz(Stream stream) {
  count_cycles<<<1, 1, 0, stream>>>(out_.data());
  RACKCAST_LAUNCH_CHECK();
  RACKCAST_CUDA_CHECK(cudaStreamSynchronize(stream));
  const std::vector<unsigned long long> counted = out_.to_host();
  return static_cast<int>(std::lround(1e3 * static_cast<double>(counted[0]) / static_cast<double>(counted[1])));
}

}  // namespace rackcast::kernels
