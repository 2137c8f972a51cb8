// Owners of CUDA things and the check macro. Host code; every CUDA call of rackcast goes through RACKCAST_CUDA_CHECK.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/launcher.hpp"

namespace rackcast::kernels {

// Unavailable when the driver or the GPU is missing, InternalError otherwise.
void cuda_check(cudaError_t status, const char* expression, const char* file, int line);

// Blocks of a grid that gives count items to a_block each.
inline unsigned blocks_for(std::size_t count, std::size_t a_block) { return static_cast<unsigned>((count + a_block - 1) / a_block); }

// Device memory of count elements of T.
template <typename T>
class DeviceBuffer;

class DeviceBytes {
 public:
  DeviceBytes() = default;
  explicit DeviceBytes(std::size_t bytes);
  ~DeviceBytes();
  DeviceBytes(DeviceBytes&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBytes& operator=(DeviceBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

void copy_to_device(void* device, const void* host, std::size_t bytes);   // synchronous
void copy_to_host(void* host, const void* device, std::size_t bytes);     // synchronous, after all work so far

template <typename T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t count) : bytes_(count * sizeof(T)), count_(count) {}
  explicit DeviceBuffer(std::span<const T> host) : DeviceBuffer(host.size()) { assign(host); }
  T* data() const { return reinterpret_cast<T*>(bytes_.data()); }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  void assign(std::span<const T> host) { copy_to_device(data(), host.data(), host.size_bytes()); }
  std::vector<T> to_host() const {
    std::vector<T> host(count_);
    copy_to_host(host.data(), data(), bytes());
    return host;
  }

 private:
  DeviceBytes bytes_;
  std::size_t count_ = 0;
};

class StreamOwner {
 public:
  StreamOwner();
  ~StreamOwner();
  StreamOwner(const StreamOwner&) = delete;
  StreamOwner& operator=(const StreamOwner&) = delete;
  Stream get() const { return stream_; }

 private:
  Stream stream_ = nullptr;
};

class EventOwner {
 public:
  EventOwner();
  ~EventOwner();
  EventOwner(const EventOwner&) = delete;
  EventOwner& operator=(const EventOwner&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// How many sets a case needs so that rotating over them leaves nothing of a set in L2.
int sets_needed(const PrepareOptions& options, std::size_t bytes_per_set);

// Random device data, a pure function of (seed, index). Defined in fill.cu.
void fill_bf16_normal(void* out, std::size_t count, float sigma, std::uint64_t seed);   // N(0, sigma)
void fill_f32_normal(float* out, std::size_t count, float sigma, std::uint64_t seed);
void fill_e4m3_normal(void* out, std::size_t count, float sigma, std::uint64_t seed);
void fill_e2m1(void* packed, std::size_t bytes, std::uint64_t seed);                    // two values a byte, every code
void fill_ue8m0(void* out, std::size_t count, int low, int high, std::uint64_t seed);   // exponents low..high (unbiased)
void fill_i32_uniform(std::int32_t* out, std::size_t count, std::int32_t low, std::int32_t high, std::uint64_t seed);
void fill_bytes(void* out, std::size_t count, std::uint64_t seed);                      // every byte value

// Poison before a check: every byte 0xFF (NaN in bf16 and fp32, -1 in int32).
void poison(void* out, std::size_t bytes);
// Values still NaN after a launch.
std::size_t count_nan_bf16(const void* data, std::size_t count);
std::size_t count_nan_f32(const float* data, std::size_t count);

// ok = relative L2 below tolerance and no NaN. With inject_fault the first value is corrupted before comparing.
CheckResult compare(std::span<const double> reference, std::span<const double> result, double tolerance,
                    const CheckOptions& options);
CheckResult both(const CheckResult& a, const CheckResult& b);  // ok only when both are; the worse figures

double bf16_to_double(std::uint16_t bits);

}  // namespace rackcast::kernels

#define RACKCAST_CUDA_CHECK(expression) \
  ::rackcast::kernels::cuda_check((expression), #expression, __FILE__, __LINE__)
// After a kernel launch.
#define RACKCAST_LAUNCH_CHECK() RACKCAST_CUDA_CHECK(cudaGetLastError())
