#include "kernels/chain_timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "kernels/host_cores.hpp"

namespace rackcast::kernels {

namespace {

__global__ void linger_kernel(uint64_t ns) {
  uint64_t start;
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - start < ns);
}

class ChainGraph {
 public:
  ChainGraph(const std::function<void(Stream)>& one, int launches, Stream stream) {
    RACKCAST_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < launches; ++i) one(stream);
    cudaGraph_t graph = nullptr;
    RACKCAST_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    RACKCAST_CUDA_CHECK(status);
    RACKCAST_CUDA_CHECK(cudaGraphUpload(executable_, stream));
  }
  ~ChainGraph() {
    if (executable_) cudaGraphExecDestroy(executable_);
  }
  ChainGraph(const ChainGraph&) = delete;
  ChainGraph& operator=(const ChainGraph&) = delete;
  void replay(Stream stream) const { RACKCAST_CUDA_CHECK(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

double replay_us(Comm& comm, const ChainGraph& graph, const std::function<void(Stream)>& meet, Stream stream) {
  EventOwner begin;
  EventOwner end;
  meet(stream);
  RACKCAST_CUDA_CHECK(cudaEventRecord(begin.get(), stream));
  graph.replay(stream);
  RACKCAST_CUDA_CHECK(cudaEventRecord(end.get(), stream));
  comm.wait(stream);
  return elapsed_us(begin, end);
}

// The fastest eighth, at least three.
std::vector<double> undisturbed(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  samples.resize(std::min(samples.size(), std::max<std::size_t>(3, samples.size() / 8)));
  return samples;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double elapsed_us(const EventOwner& begin, const EventOwner& end) {
  float milliseconds = 0;
  RACKCAST_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
  return static_cast<double>(milliseconds) * 1e3;
}

void launch_linger(uint64_t ns, Stream stream) {
  linger_kernel<<<1, 1, 0, stream>>>(ns);
  RACKCAST_LAUNCH_CHECK();
}
void load_linger() {
  cudaFuncAttributes ignored;
  RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, linger_kernel));
}

std::vector<double> time_chain(Comm& comm, const std::string& at, const std::function<void(Stream)>& one,
                               const std::function<void(Stream)>& meet, const ChainOptions& options, Stream stream, int& launches) {
  // The ranks must agree on the length before anyone starts: a shorter chain would leave its peers waiting.
  const int trial = 8;
  double once_us = 0;
  {
    const ChainGraph graph(one, trial, stream);
    comm.barrier(at + ": trial");
    replay_us(comm, graph, meet, stream);
    once_us = comm.max_over_ranks(at + ": length", {replay_us(comm, graph, meet, stream) / trial})[0];
  }
  launches = std::clamp(static_cast<int>(std::ceil(options.chain_us / std::max(once_us, 0.1))), 4, options.launches_max);
  const ChainGraph graph(one, launches, stream);
  comm.barrier(at + ": chain");
  replay_us(comm, graph, meet, stream);
  std::vector<double> samples;
  for (int i = 0; i < options.samples; ++i) samples.push_back(replay_us(comm, graph, meet, stream) / launches);
  return comm.max_over_ranks(at + ": samples", samples);
}

EagerSamples time_eager(Comm* comm, const std::string& at, const std::function<void(Stream)>& one,
                        const std::function<void(Stream)>& meet, int samples) {
  using Clock = std::chrono::steady_clock;
  constexpr int rounds = 12;
  constexpr int warm = 2;
  constexpr double patience_us = 60'000;  // of a round; slow ways get fewer samples, never under 3
  const std::vector<int> cores = quiet_first(cores_of(physical_cores(), comm ? comm->rank() : 0, comm ? comm->ranks() : 1));
  EventOwner begin;
  EventOwner end;
  std::vector<std::unique_ptr<StreamOwner>> streams;  // kept, so that the next one gets another queue
  EagerSamples all;
  for (int round = 0; round < rounds; ++round) {
    const PinnedThread pinned(cores.empty() ? -1 : cores[static_cast<std::size_t>(round) % cores.size()]);
    streams.push_back(std::make_unique<StreamOwner>());
    const Stream stream = streams.back()->get();
    EagerSamples out;
    int wanted = (samples + 1) / 2;
    for (int i = -warm; i < wanted; ++i) {
      if (i == 0) {
        double slowest = out.time_us.back();
        if (comm) slowest = comm->max_over_ranks(at + ": warm", {slowest})[0];
        wanted = std::clamp(static_cast<int>(patience_us / std::max(slowest, 1.0)), 3, wanted);
        out = {};
      }
      if (comm) comm->barrier(at);
      meet(stream);
      RACKCAST_CUDA_CHECK(cudaEventRecord(begin.get(), stream));
      const auto before = Clock::now();
      one(stream);
      const double post_us = std::chrono::duration<double>(Clock::now() - before).count() * 1e6;
      RACKCAST_CUDA_CHECK(cudaEventRecord(end.get(), stream));
      if (comm) comm->wait(stream);
      else RACKCAST_CUDA_CHECK(cudaStreamSynchronize(stream));
      out.time_us.push_back(elapsed_us(begin, end));
      out.post_us.push_back(post_us);
    }
    if (comm) {  // afterwards all ranks hold the same figures
      out.time_us = comm->max_over_ranks(at + ": samples", out.time_us);
      out.post_us = comm->max_over_ranks(at + ": post", out.post_us);
    }
    const double post = median(out.post_us);
    all.post_low_us = round == 0 ? post : std::min(all.post_low_us, post);
    all.post_high_us = round == 0 ? post : std::max(all.post_high_us, post);
    all.time_us.insert(all.time_us.end(), out.time_us.begin(), out.time_us.end());
    all.post_us.insert(all.post_us.end(), out.post_us.begin(), out.post_us.end());
  }
  all.time_us = undisturbed(std::move(all.time_us));
  all.post_us = undisturbed(std::move(all.post_us));
  return all;
}

}  // namespace rackcast::kernels
