#include "kernels/device.cuh"
#include "kernels/device.hpp"

namespace rackcast::kernels {
namespace {

class PinnedBytes {
 public:
  explicit PinnedBytes(std::size_t bytes) : bytes_(bytes) { RACKCAST_CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&data_), bytes)); }
  ~PinnedBytes() { cudaFreeHost(data_); }
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;
  std::uint8_t* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_;
};

class HostCopyCase final : public Case {
 public:
  HostCopyCase(const Shape& shape, std::uint64_t seed)
      : to_device_(shape.text("direction") == "to_device"), host_(static_cast<std::size_t>(shape.number("bytes"))), device_(host_.bytes()) {
    fill_bytes(device_.data(), device_.size(), seed);
    for (std::size_t i = 0; i < host_.bytes(); ++i) host_.data()[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13);
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
  }
  void launch(int, Stream stream) override {
    if (to_device_) RACKCAST_CUDA_CHECK(cudaMemcpyAsync(device_.data(), host_.data(), host_.bytes(), cudaMemcpyHostToDevice, stream));
    else RACKCAST_CUDA_CHECK(cudaMemcpyAsync(host_.data(), device_.data(), host_.bytes(), cudaMemcpyDeviceToHost, stream));
  }
  CheckResult check(const CheckOptions& options) override {
    StreamOwner stream;
    launch(0, stream.get());
    RACKCAST_CUDA_CHECK(cudaStreamSynchronize(stream.get()));
    std::vector<std::uint8_t> device = device_.to_host();
    if (options.inject_fault) device[0] ^= 1;
    CheckResult result;
    result.ok = std::equal(device.begin(), device.end(), host_.data());
    if (!result.ok) result.note = "a byte differs";
    return result;
  }
  std::string transport() const override { return "pcie"; }

 private:
  bool to_device_;
  PinnedBytes host_;
  DeviceBuffer<std::uint8_t> device_;
};

class HostCopyLauncher final : public Launcher {
 public:
  const Family& family() const override { return host_copy_family(); }
  std::vector<std::string> implementations(const GpuEnvironment&, const Shape&) const override { return {"copy_engine"}; }
  std::unique_ptr<Case> prepare(const GpuEnvironment&, const Shape& shape, const std::string&, const PrepareOptions& options) const override {
    return std::make_unique<HostCopyCase>(shape, options.seed);
  }
};

}  // namespace

const Launcher& host_copy_launcher() {
  static const HostCopyLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
