#include "calib/gpu/timer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "kernels/clock_probe.hpp"

namespace rackcast::calib {
namespace {

class Graph {
 public:
  Graph(kernels::Case& one, bool cold, int launches, kernels::Stream stream) {
    RACKCAST_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    try {
      for (int i = 0; i < launches; ++i) one.launch(cold ? i % one.sets() : 0, stream);
    } catch (...) {
      cudaStreamEndCapture(stream, &graph_);
      if (graph_) cudaGraphDestroy(graph_);
      throw;
    }
    RACKCAST_CUDA_CHECK(cudaStreamEndCapture(stream, &graph_));
    RACKCAST_CUDA_CHECK(cudaGraphInstantiate(&executable_, graph_, 0));
  }
  ~Graph() {
    if (executable_) cudaGraphExecDestroy(executable_);
    if (graph_) cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  double replay_us(kernels::Stream stream) {
    RACKCAST_CUDA_CHECK(cudaEventRecord(begin_.get(), stream));
    RACKCAST_CUDA_CHECK(cudaGraphLaunch(executable_, stream));
    RACKCAST_CUDA_CHECK(cudaEventRecord(end_.get(), stream));
    RACKCAST_CUDA_CHECK(cudaEventSynchronize(end_.get()));
    float milliseconds = 0;
    RACKCAST_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
    return static_cast<double>(milliseconds) * 1e3;
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
  kernels::EventOwner begin_, end_;
};

}  // namespace

namespace {

// Launches of one replay: long enough to time, every set equally often when cold.
int launches_of(kernels::Case& one, bool cold, const TimerOptions& options, kernels::Stream stream) {
  one.launch(0, stream);  // loads the module outside the capture
  RACKCAST_CUDA_CHECK(cudaStreamSynchronize(stream));
  int launches = cold ? std::max(one.sets(), 4) : 4;
  double once_us = 0;
  {
    Graph trial(one, cold, launches, stream);
    trial.replay_us(stream);
    once_us = trial.replay_us(stream) / launches;
  }
  const int wanted = static_cast<int>(std::ceil(options.replay_us / std::max(once_us, 0.1)));
  launches = std::clamp(std::max(wanted, cold ? one.sets() : 1), 1, options.max_launches);
  return cold ? (launches + one.sets() - 1) / one.sets() * one.sets() : launches;
}

}  // namespace

Timing time_case(kernels::Case& one, bool cold, const TimerOptions& options, Pacer& pacer, kernels::Stream stream) {
  const int launches = launches_of(one, cold, options, stream);
  Graph graph(one, cold, launches, stream);
  StoppingRule rule(options.limits);
  pacer.begin_point();
  while (!rule.done()) {
    std::vector<double> burst;
    double busy_us = 0;
    const double warm_us = std::min(options.warm_us, pacer.burst_us() / 2);
    for (double warm = 0; warm < warm_us;) warm += graph.replay_us(stream);
    while (busy_us < pacer.burst_us() && burst.size() < options.limits.min_samples) {
      burst.push_back(graph.replay_us(stream));
      busy_us += burst.back();
    }
    if (!pacer.burst_counts()) continue;
    for (const double elapsed : burst) rule.add(elapsed / launches, elapsed * 1e-6);
  }
  return {summarise(rule.samples()), launches, pacer.gave_up()};
}

Timing time_sustained(kernels::Case& one, double seconds, const TimerOptions& options, kernels::Stream stream) {
  const int launches = launches_of(one, true, options, stream);
  Graph graph(one, true, launches, stream);
  std::vector<double> samples;
  for (double busy = 0; busy < seconds * 1e6;) {
    const double elapsed = graph.replay_us(stream);
    busy += elapsed;
    if (busy > seconds * 0.5e6) samples.push_back(elapsed / launches);
  }
  return {summarise(samples), launches, true};
}

Pacer gpu_pacer(int best_mhz, kernels::Stream stream) {
  const auto probe = std::make_shared<kernels::ClockProbe>();
  if (best_mhz == 0) best_mhz = probe->mhz(stream);
  return Pacer(
      {}, best_mhz, [probe, stream] { return std::optional<int>(probe->mhz(stream)); },
      [](double ms) { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms)); });
}

kernels::GpuEnvironment open_gpu(int device) {
  int count = 0;
  RACKCAST_CUDA_CHECK(cudaGetDeviceCount(&count));
  RACKCAST_CUDA_CHECK(cudaSetDevice(device));
  cudaDeviceProp properties;
  RACKCAST_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  kernels::GpuEnvironment gpu;
  gpu.device = device;
  gpu.cc_major = properties.major;
  gpu.cc_minor = properties.minor;
  gpu.sm_count = properties.multiProcessorCount;
  gpu.l2_bytes = static_cast<std::size_t>(properties.l2CacheSize);
  gpu.memory_bytes = properties.totalGlobalMem;
  return gpu;
}

}  // namespace rackcast::calib
