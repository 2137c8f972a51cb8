#include "calib/gpu/timer.hpp"

#include <algorithm>
#include <cmath>

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

Timing time_case(kernels::Case& one, bool cold, const TimerOptions& options, kernels::Stream stream) {
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
  if (cold) launches = (launches + one.sets() - 1) / one.sets() * one.sets();  // every set equally often

  Graph graph(one, cold, launches, stream);
  for (double warm = 0; warm < options.warm_us;) warm += graph.replay_us(stream);
  StoppingRule rule(options.limits);
  while (!rule.done()) {
    const double elapsed = graph.replay_us(stream);
    rule.add(elapsed / launches, elapsed * 1e-6);
  }
  return {summarise(rule.samples()), launches};
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
