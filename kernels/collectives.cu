#include "kernels/collectives.hpp"

#include "kernels/chain_timing.hpp"
#include "kernels/device.cuh"
#include "kernels/launcher.hpp"
#include "kernels/nccl_api.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {

namespace {

// Small whole numbers, so that sums over up to 72 ranks are exact in bf16 (at most 72 * 3 < 256).
__host__ __device__ int value_of(int rank, int64_t index) { return static_cast<int>((index * 7 + rank * 3 + (index >> 10)) % 4); }

__global__ void fill_kernel(__nv_bfloat16* out, int64_t count, int rank) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x)
    out[i] = __float2bfloat16(static_cast<float>(value_of(rank, i)));
}

enum class Kind { all_reduce, all_gather, reduce_scatter, all_to_all };

__global__ void check_kernel(const __nv_bfloat16* out, int64_t count, int64_t part, Kind kind, int rank, int ranks, unsigned long long* found) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    int wanted = 0;
    if (kind == Kind::all_reduce)
      for (int r = 0; r < ranks; ++r) wanted += value_of(r, i);
    if (kind == Kind::reduce_scatter)
      for (int r = 0; r < ranks; ++r) wanted += value_of(r, rank * part + i);
    if (kind == Kind::all_gather) wanted = value_of(static_cast<int>(i / part), i % part);
    if (kind == Kind::all_to_all) wanted = value_of(static_cast<int>(i / part), rank * part + i % part);
    if (static_cast<float>(out[i]) != static_cast<float>(wanted)) atomicAdd(found, 1ULL);
  }
}

class CollectivesCase final : public Case {
 public:
  CollectivesCase(const GpuEnvironment& gpu, const Shape& shape)
      : comm_(*gpu.comm), api_(comm_.nccl()), at_("collectives " + shape.key()), name_(shape.text("collective")),
        count_(shape.number("bytes") / 2), part_(count_ / comm_.ranks()), scratch_(1) {
    kind_ = name_ == "all_reduce" ? Kind::all_reduce : name_ == "all_gather" ? Kind::all_gather : name_ == "reduce_scatter" ? Kind::reduce_scatter : Kind::all_to_all;
    if (kind_ == Kind::all_to_all && !api_.AlltoAll) throw Unavailable("this NCCL has no ncclAlltoAll (2.28 and later have)");
    in_ = DeviceBuffer<uint16_t>(static_cast<std::size_t>(kind_ == Kind::all_gather ? part_ : count_));
    out_ = DeviceBuffer<uint16_t>(static_cast<std::size_t>(kind_ == Kind::reduce_scatter ? part_ : count_));
    cudaFuncAttributes ignored;
    RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, fill_kernel));
    RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, check_kernel));
    load_linger();
    fill_kernel<<<1024, 256>>>(reinterpret_cast<__nv_bfloat16*>(in_.data()), static_cast<int64_t>(in_.size()), comm_.rank());
    RACKCAST_LAUNCH_CHECK();
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    comm_.barrier(at_ + ": prepared");
  }
  ~CollectivesCase() override { cudaDeviceSynchronize(); }

  void launch(int, Stream stream) override {
    const auto part = static_cast<std::size_t>(part_);
    const auto count = static_cast<std::size_t>(count_);
    switch (kind_) {
      case Kind::all_reduce: return api_.check(api_.AllReduce(in_.data(), out_.data(), count, ncclBfloat16, ncclSum, comm_.nccl_comm(), stream), "AllReduce", __FILE__, __LINE__);
      case Kind::all_gather: return api_.check(api_.AllGather(in_.data(), out_.data(), part, ncclBfloat16, comm_.nccl_comm(), stream), "AllGather", __FILE__, __LINE__);
      case Kind::reduce_scatter: return api_.check(api_.ReduceScatter(in_.data(), out_.data(), part, ncclBfloat16, ncclSum, comm_.nccl_comm(), stream), "ReduceScatter", __FILE__, __LINE__);
      case Kind::all_to_all: return api_.check(api_.AlltoAll(in_.data(), out_.data(), part, ncclBfloat16, comm_.nccl_comm(), stream), "AlltoAll", __FILE__, __LINE__);
    }
  }
  CheckResult check(const CheckOptions& options) override {
    poison(out_.data(), out_.bytes());
    DeviceBuffer<unsigned long long> found(1);
    RACKCAST_CUDA_CHECK(cudaMemset(found.data(), 0, found.bytes()));
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    comm_.barrier(at_ + ": check");
    launch(0, stream_.get());
    check_kernel<<<1024, 256, 0, stream_.get()>>>(reinterpret_cast<const __nv_bfloat16*>(out_.data()), static_cast<int64_t>(out_.size()), part_, kind_,
                                                  comm_.rank(), comm_.ranks(), found.data());
    RACKCAST_LAUNCH_CHECK();
    comm_.wait(stream_.get());
    const unsigned long long wrong = found.to_host()[0] + (options.inject_fault ? 1 : 0);
    CheckResult result;
    result.ok = wrong == 0;
    result.rel_l2 = wrong ? 1 : 0;
    if (wrong) result.note = std::to_string(wrong) + " wrong values on rank " + std::to_string(comm_.rank());
    return result;
  }
  std::optional<OwnTiming> measure() override {
    OwnTiming timing;
    timing.mode = "chain";
    const auto meet = [&](Stream stream) {
      RACKCAST_NCCL_CHECK(api_, AllReduce(scratch_.data(), scratch_.data(), 1, ncclFloat, ncclSum, comm_.nccl_comm(), stream));
      launch_linger(linger_for_graph_ns, stream);
    };
    timing.samples_us = time_chain(comm_, at_, [&](Stream stream) { launch(0, stream); }, meet, {}, stream_.get(), launches_);
    return timing;
  }
  std::string transport() const override { return comm_.transport(); }
  std::string detail() const override { return "chain of " + std::to_string(launches_); }

 private:
  Comm& comm_;
  const NcclApi& api_;
  std::string at_, name_;
  Kind kind_ = Kind::all_reduce;
  int64_t count_, part_;
  DeviceBuffer<uint16_t> in_, out_;
  DeviceBuffer<float> scratch_;
  StreamOwner stream_;
  int launches_ = 0;
};

class CollectivesLauncher final : public Launcher {
 public:
  const Family& family() const override { return collectives_family(); }
  std::vector<std::string> implementations(const GpuEnvironment& gpu, const Shape& shape) const override {
    return gpu.comm && gpu.comm->ranks() == shape.number("ranks") ? std::vector<std::string>{"nccl"} : std::vector<std::string>{};
  }
  std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string&, const PrepareOptions&) const override {
    return std::make_unique<CollectivesCase>(gpu, shape);
  }
};

}  // namespace

const Launcher& collectives_launcher() {
  static const CollectivesLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
