#include "kernels/device.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/base/error.hpp"

namespace rackcast::kernels {

void cuda_check(cudaError_t status, const char* expression, const char* file, int line) {
  if (status == cudaSuccess) return;
  const std::string what = std::string(expression) + ": " + cudaGetErrorString(status) + " (" + file + ":" + std::to_string(line) + ")";
  if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver || status == cudaErrorInitializationError ||
      status == cudaErrorNoKernelImageForDevice || status == cudaErrorMemoryAllocation)
    throw Unavailable(what);
  throw InternalError(what);
}

DeviceBytes::DeviceBytes(std::size_t bytes) : bytes_(bytes) {
  if (bytes) RACKCAST_CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&data_), bytes));
}
DeviceBytes::~DeviceBytes() {
  if (data_) cudaFree(data_);  // a destructor cannot report
}

void copy_to_device(void* device, const void* host, std::size_t bytes) {
  if (bytes) RACKCAST_CUDA_CHECK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
}
void copy_to_host(void* host, const void* device, std::size_t bytes) {
  RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
  if (bytes) RACKCAST_CUDA_CHECK(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
}

StreamOwner::StreamOwner() { RACKCAST_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
StreamOwner::~StreamOwner() {
  if (stream_) cudaStreamDestroy(stream_);
}
EventOwner::EventOwner() { RACKCAST_CUDA_CHECK(cudaEventCreate(&event_)); }
EventOwner::~EventOwner() {
  if (event_) cudaEventDestroy(event_);
}

int sets_needed(const PrepareOptions& options, std::size_t bytes_per_set) {
  const std::size_t wanted = options.cold_bytes / std::max<std::size_t>(bytes_per_set, 1) + 1;
  return static_cast<int>(std::clamp<std::size_t>(wanted, 1, static_cast<std::size_t>(std::max(options.max_sets, 1))));
}

CheckResult compare(std::span<const double> reference, std::span<const double> result, double tolerance,
                    const CheckOptions& options) {
  RACKCAST_CHECK(reference.size() == result.size() && !reference.empty(), "nothing or unlike things to compare");
  double error = 0, norm = 0, largest = 0;
  bool finite = true;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    double value = result[i];
    if (options.inject_fault && i == 0) value = value * -2 + 1e3;
    finite = finite && std::isfinite(value) && std::isfinite(reference[i]);
    const double difference = value - reference[i];
    error += difference * difference;
    norm += reference[i] * reference[i];
    largest = std::max(largest, std::abs(difference));
  }
  CheckResult check;
  check.rel_l2 = std::sqrt(error / std::max(norm, 1e-300));
  check.max_abs = largest;
  check.tolerance = tolerance;
  check.ok = finite && check.rel_l2 <= tolerance;
  if (!finite) check.note = "a value is not finite";
  else if (!check.ok) check.note = "relative L2 error above tolerance";
  return check;
}

CheckResult both(const CheckResult& a, const CheckResult& b) {
  CheckResult worse = a.rel_l2 / std::max(a.tolerance, 1e-300) >= b.rel_l2 / std::max(b.tolerance, 1e-300) ? a : b;
  worse.max_abs = std::max(a.max_abs, b.max_abs);
  worse.ok = a.ok && b.ok;
  worse.note = !a.ok ? a.note : b.note;
  return worse;
}

double bf16_to_double(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  static_assert(sizeof value == sizeof wide);
  __builtin_memcpy(&value, &wide, sizeof value);
  return value;
}

}  // namespace rackcast::kernels
