// The chain times itself: one replay of a graph that holds nothing else, so that the floor is in it.
#include <algorithm>

#include "kernels/device.hpp"
#include "kernels/early_launch.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {
namespace {

// Waits for the kernel before it (nothing to wait for without programmatic launch), lets the next one start at once.
template <bool Add>
__global__ void link_kernel(const int* in, int* out, int blocks) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  if constexpr (Add)
    if (threadIdx.x == 0) out[blockIdx.x] = *reinterpret_cast<const volatile int*>(in + (blockIdx.x + 1) % blocks) + 1;
}

class ChainCase final : public Case {
 public:
  explicit ChainCase(const Shape& shape)
      : nodes_(static_cast<int>(shape.number("nodes"))), blocks_(static_cast<int>(shape.number("blocks"))), add_(shape.text("work") == "add"),
        pdl_(shape.number("pdl") != 0), values_{DeviceBuffer<int>(static_cast<std::size_t>(blocks_)), DeviceBuffer<int>(static_cast<std::size_t>(blocks_))} {
    for (const auto& buffer : values_) RACKCAST_CUDA_CHECK(cudaMemset(buffer.data(), 0, buffer.bytes()));
  }

  void launch(int, Stream stream) override {
    for (int node = 0; node < nodes_; ++node) {
      const int* in = values_[node % 2].data();
      int* out = values_[(node + 1) % 2].data();
      launch_early({static_cast<unsigned>(blocks_), 128, stream, pdl_}, add_ ? link_kernel<true> : link_kernel<false>, in, out, blocks_);
    }
  }

  CheckResult check(const CheckOptions& options) override {
    for (const auto& buffer : values_) RACKCAST_CUDA_CHECK(cudaMemset(buffer.data(), 0, buffer.bytes()));
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    StreamOwner stream;
    launch(0, stream.get());
    RACKCAST_CUDA_CHECK(cudaStreamSynchronize(stream.get()));
    const std::vector<int> last = values_[nodes_ % 2].to_host();
    const std::vector<double> expected(last.size(), add_ ? nodes_ : 0);
    if (!add_) {
      CheckResult result;
      result.ok = !options.inject_fault;
      return result;
    }
    return compare(expected, std::vector<double>(last.begin(), last.end()), 0, options);
  }

  std::optional<OwnTiming> measure() override {
    StreamOwner stream;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    RACKCAST_CUDA_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    launch(0, stream.get());
    RACKCAST_CUDA_CHECK(cudaStreamEndCapture(stream.get(), &graph));
    RACKCAST_CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
    OwnTiming timing;
    timing.mode = "chain";
    EventOwner begin, end;
    constexpr int warm = 50, samples = 400;
    for (int i = 0; i < warm + samples; ++i) {
      RACKCAST_CUDA_CHECK(cudaEventRecord(begin.get(), stream.get()));
      RACKCAST_CUDA_CHECK(cudaGraphLaunch(executable, stream.get()));
      RACKCAST_CUDA_CHECK(cudaEventRecord(end.get(), stream.get()));
      RACKCAST_CUDA_CHECK(cudaEventSynchronize(end.get()));
      float milliseconds = 0;
      RACKCAST_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
      if (i >= warm) timing.samples_us.push_back(static_cast<double>(milliseconds) * 1e3);
    }
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    return timing;
  }

 private:
  int nodes_, blocks_;
  bool add_, pdl_;
  DeviceBuffer<int> values_[2];
};

class NodeChainLauncher final : public Launcher {
 public:
  const Family& family() const override { return node_chain_family(); }
  std::vector<std::string> implementations(const GpuEnvironment& gpu, const Shape& shape) const override {
    if (shape.number("pdl") != 0 && gpu.cc_major < 9) return {};
    return {"portable"};
  }
  std::unique_ptr<Case> prepare(const GpuEnvironment&, const Shape& shape, const std::string&, const PrepareOptions&) const override {
    return std::make_unique<ChainCase>(shape);
  }
};

}  // namespace

const Launcher& node_chain_launcher() {
  static const NodeChainLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
