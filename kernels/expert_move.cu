#include "kernels/expert_move.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/all_to_all_cases.hpp"
#include "kernels/chain_timing.hpp"
#include "kernels/launcher.hpp"
#include "kernels/transfer.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {

namespace {

constexpr std::size_t load_bytes = std::size_t{150'000'000};  // about eight experts: what a decode layer streams
constexpr int load_tokens = 64;
constexpr int load_links = 48;  // of one replay

// Reads all of it once, like weights that a small batch multiplies with.
__global__ void __launch_bounds__(512) stream_kernel(const uint4* data, int64_t words, unsigned* out) {
  unsigned sum = 0;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < words; i += int64_t{gridDim.x} * blockDim.x) {
    const uint4 v = data[i];
    sum ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x12345678) *out = sum;  // never taken for granted by the compiler, hardly ever true
}

Shape load_shape(int ranks) {
  Shape s;
  s.set("part", "pair").set("path", "lsa").set("ranks", ranks).set("tokens", load_tokens).set("hidden", 4096).set("top_k", 6);
  s.set("experts", (256 + ranks - 1) / ranks * ranks).set("payload", "fp8").set("routing", "balanced").set("ctas", 0);
  return s;
}

class ExpertMoveCase final : public Case {
 public:
  ExpertMoveCase(const GpuEnvironment& gpu, const Shape& shape, const PrepareOptions& options)
      : transfer_(gpu.comm, "expert_move " + shape.key()), comm_(gpu.comm), part_(shape.text("part")), beside_(shape.text("beside")), path_(shape.text("path")),
        bytes_(shape.number("experts") * shape.number("expert_bytes")), expert_bytes_(shape.number("expert_bytes")), experts_(shape.number("experts")),
        ctas_(static_cast<int>(shape.number("ctas"))), sms_(gpu.sm_count), seed_(options.seed), source_(static_cast<std::size_t>(bytes_)) {
    load_block_kernels();
    cudaFuncAttributes ignored;
    RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, stream_kernel));
    load_linger();
    fill_bytes(source_.data(), source_.bytes(), seed_ + static_cast<uint64_t>(rank()));
    if (comm_) window_ = comm_->make_window(static_cast<std::size_t>(bytes_));
    else local_ = DeviceBytes(static_cast<std::size_t>(bytes_));
    poison(received(), static_cast<std::size_t>(bytes_));
    if (part_ == "load" || beside_ == "load") {
      weights_ = DeviceBytes(load_bytes);
      fill_bytes(weights_.data(), weights_.bytes(), seed_ + 77);
      sink_ = DeviceBuffer<unsigned>(1);
      if (comm_) traffic_ = a2a::one_sided_case(gpu, load_shape(ranks()), options);
    }
    transfer_.meet("prepared");
  }
  ~ExpertMoveCase() override {
    cudaDeviceSynchronize();
    if (load_) cudaGraphExecDestroy(load_);
  }

  void launch(int, Stream stream) override { move(stream); }
  CheckResult check(const CheckOptions& options) override {
    if (traffic_) {
      const CheckResult traffic = traffic_->check(options);
      if (!traffic.ok) return traffic;
    }
    move(moving_.get());
    transfer_.wait(moving_.get());
    transfer_.meet("moved");
    DeviceBytes wanted(static_cast<std::size_t>(bytes_));
    fill_bytes(wanted.data(), wanted.bytes(), seed_ + static_cast<uint64_t>((rank() + ranks() - 1) % ranks()));
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    return arrival(unlike_words(whole(), reinterpret_cast<const char*>(wanted.data()), received(), moving_.get()), options);
  }
  std::optional<OwnTiming> measure() override {
    OwnTiming timing;
    timing.mode = "eager";
    if (part_ == "load" || beside_ == "load") capture_load();
    constexpr int samples = 40;  // beside one another the two drift in and out of step
    for (int i = -2; i < samples; ++i) {
      const double us = sample_us();
      if (i >= 0) timing.samples_us.push_back(us);
    }
    if (comm_) timing.samples_us = comm_->max_over_ranks(transfer_.at() + ": samples", timing.samples_us);
    return timing;
  }
  std::string transport() const override { return comm_ ? comm_->transport() : "loopback"; }

 private:
  int rank() const { return transfer_.rank(); }
  int ranks() const { return transfer_.ranks(); }
  char* received() const { return window_ ? window_->local() : reinterpret_cast<char*>(local_.data()); }
  char* next_ranks() const { return window_ ? window_->peers()[static_cast<std::size_t>((rank() + 1) % ranks())] : received(); }
  BlockList whole() const { return {nullptr, nullptr, experts_, expert_bytes_}; }
  void move(Stream stream) {
    const char* from = reinterpret_cast<const char*>(source_.data());
    if (path_ == "kernel") return launch_block_copy(whole(), from, next_ranks(), ctas_, stream);
    for (int64_t e = 0; e < experts_; ++e)
      RACKCAST_CUDA_CHECK(cudaMemcpyAsync(next_ranks() + e * expert_bytes_, from + e * expert_bytes_, static_cast<std::size_t>(expert_bytes_), cudaMemcpyDefault, stream));
  }
  void capture_load() {
    if (load_) return;
    RACKCAST_CUDA_CHECK(cudaStreamBeginCapture(loading_.get(), cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < load_links; ++i) {
      stream_kernel<<<sms_ * 2, 512, 0, loading_.get()>>>(reinterpret_cast<const uint4*>(weights_.data()), static_cast<int64_t>(load_bytes / 16), sink_.data());
      if (traffic_) traffic_->launch(0, loading_.get());
    }
    cudaGraph_t graph = nullptr;
    RACKCAST_CUDA_CHECK(cudaStreamEndCapture(loading_.get(), &graph));
    const cudaError_t status = cudaGraphInstantiate(&load_, graph, 0);
    cudaGraphDestroy(graph);
    RACKCAST_CUDA_CHECK(status);
  }

  // Load and movement start together, on streams of their own. What is timed runs inside the other: the load goes on
  // longer than one movement, or movements are queued for longer than the load lasts.
  double sample_us() {
    const bool with_load = part_ == "load" || beside_ == "load";
    const bool with_move = part_ == "move" || beside_ == "move";
    if (comm_) comm_->barrier(transfer_.at());
    launch_linger(150'000, loading_.get());  // long enough to queue what follows
    RACKCAST_CUDA_CHECK(cudaEventRecord(started_.get(), loading_.get()));
    RACKCAST_CUDA_CHECK(cudaStreamWaitEvent(moving_.get(), started_.get(), 0));
    RACKCAST_CUDA_CHECK(cudaEventRecord(load_begin_.get(), loading_.get()));
    if (with_load)
      for (int i = 0; i < load_repeats_; ++i) RACKCAST_CUDA_CHECK(cudaGraphLaunch(load_, loading_.get()));
    RACKCAST_CUDA_CHECK(cudaEventRecord(load_end_.get(), loading_.get()));
    RACKCAST_CUDA_CHECK(cudaEventRecord(move_begin_.get(), moving_.get()));
    if (with_move)
      for (int i = 0; i < move_repeats_; ++i) move(moving_.get());
    RACKCAST_CUDA_CHECK(cudaEventRecord(move_end_.get(), moving_.get()));
    transfer_.wait(moving_.get());
    transfer_.wait(loading_.get());
    const double load_us = with_load ? elapsed_us(load_begin_, load_end_) / load_repeats_ : 0;
    const double move_us = with_move ? elapsed_us(move_begin_, move_end_) / move_repeats_ : 0;
    if (with_load && with_move) balance(load_us, move_us);
    return part_ == "load" ? load_us / load_links : move_us;
  }
  // After each sample: as many repeats of the other as cover what is timed. Equal on all ranks, for the load's flags.
  void balance(double load_us, double move_us) {
    std::vector<double> both = {load_us, move_us};
    if (comm_) both = comm_->max_over_ranks(transfer_.at() + ": balance", both);
    const auto cover = [](double inner, double outer) { return static_cast<int>(std::clamp(std::ceil(1.3 * inner / std::max(outer, 1.0)), 1.0, 64.0)); };
    if (part_ == "move") load_repeats_ = cover(both[1], both[0]);
    else move_repeats_ = cover(both[0], both[1]);
  }

  TransferRank transfer_;
  Comm* comm_;
  std::string part_, beside_, path_;
  int64_t bytes_, expert_bytes_, experts_;
  int ctas_, sms_;
  uint64_t seed_;
  DeviceBytes source_, local_, weights_;
  DeviceBuffer<unsigned> sink_;
  std::unique_ptr<Window> window_;
  std::unique_ptr<Case> traffic_;
  StreamOwner loading_, moving_;
  EventOwner started_, load_begin_, load_end_, move_begin_, move_end_;
  cudaGraphExec_t load_ = nullptr;
  int load_repeats_ = 1, move_repeats_ = 1;
};

class ExpertMoveLauncher final : public Launcher {
 public:
  const Family& family() const override { return expert_move_family(); }
  std::vector<std::string> implementations(const GpuEnvironment& gpu, const Shape& shape) const override {
    const int64_t here = gpu.comm ? gpu.comm->ranks() : 1;
    return here == shape.number("ranks") ? std::vector<std::string>{"portable"} : std::vector<std::string>{};
  }
  std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string&, const PrepareOptions& options) const override {
    return std::make_unique<ExpertMoveCase>(gpu, shape, options);
  }
};

}  // namespace

const Launcher& expert_move_launcher() {
  static const ExpertMoveLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
