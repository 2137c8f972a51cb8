// Random inputs, poison and NaN counts on the GPU. Values depend only on (seed, index), so a run can be repeated.
#include "kernels/device.cuh"
#include "kernels/device.hpp"

namespace rackcast::kernels {
namespace {

__device__ float uniform(std::uint64_t bits) { return (static_cast<float>(bits >> 40) + 0.5f) * 0x1p-24f; }

__device__ float normal(std::uint64_t seed, std::uint64_t index) {  // Box-Muller, one of the pair
  const std::uint64_t bits = random_bits(seed, index);
  const float radius = sqrtf(-2.0f * __logf(uniform(bits)));
  return radius * __cosf(6.2831853f * uniform(bits << 24));
}

struct Bf16Normal {
  float sigma;
  __device__ __nv_bfloat16 operator()(std::uint64_t seed, std::uint64_t i) const { return __float2bfloat16(sigma * normal(seed, i)); }
};
struct F32Normal {
  float sigma;
  __device__ float operator()(std::uint64_t seed, std::uint64_t i) const { return sigma * normal(seed, i); }
};
struct E4m3Normal {
  float sigma;
  __device__ std::uint8_t operator()(std::uint64_t seed, std::uint64_t i) const { return float_to_e4m3(sigma * normal(seed, i)); }
};
struct Byte {
  __device__ std::uint8_t operator()(std::uint64_t seed, std::uint64_t i) const { return static_cast<std::uint8_t>(random_bits(seed, i) >> 32); }
};
struct Exponent {
  int low, high;
  __device__ std::uint8_t operator()(std::uint64_t seed, std::uint64_t i) const {
    return static_cast<std::uint8_t>(127 + low + static_cast<int>((random_bits(seed, i) >> 33) % static_cast<std::uint64_t>(high - low + 1)));
  }
};
struct Uniform {
  std::int32_t low, high;
  __device__ std::int32_t operator()(std::uint64_t seed, std::uint64_t i) const {
    return low + static_cast<std::int32_t>((random_bits(seed, i) >> 16) % static_cast<std::uint64_t>(high - low + 1));
  }
};

template <typename T, typename Draw>
__global__ void fill_kernel(T* out, std::size_t count, std::uint64_t seed, Draw draw) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x)
    out[i] = draw(seed, i);
}

constexpr int threads = 256;
int blocks_for(std::size_t count) {
  const std::size_t wanted = (count + threads - 1) / threads;
  return static_cast<int>(wanted < 4096 ? wanted : 4096);
}

template <typename T, typename Draw>
void fill(void* out, std::size_t count, std::uint64_t seed, Draw draw) {
  if (count == 0) return;
  fill_kernel<<<blocks_for(count), threads>>>(static_cast<T*>(out), count, seed, draw);
  RACKCAST_LAUNCH_CHECK();
}

template <typename T>
__global__ void count_nan_kernel(const T* data, std::size_t count, unsigned long long* found) {
  unsigned long long mine = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x)
    mine += isnan(static_cast<float>(data[i]));
  if (mine) atomicAdd(found, mine);
}

template <typename T>
std::size_t count_nan(const T* data, std::size_t count) {
  DeviceBuffer<unsigned long long> found(1);
  RACKCAST_CUDA_CHECK(cudaMemset(found.data(), 0, found.bytes()));
  if (count) {
    count_nan_kernel<<<blocks_for(count), threads>>>(data, count, found.data());
    RACKCAST_LAUNCH_CHECK();
  }
  return found.to_host()[0];
}

}  // namespace

void fill_bf16_normal(void* out, std::size_t count, float sigma, std::uint64_t seed) { fill<__nv_bfloat16>(out, count, seed, Bf16Normal{sigma}); }
void fill_f32_normal(float* out, std::size_t count, float sigma, std::uint64_t seed) { fill<float>(out, count, seed, F32Normal{sigma}); }
void fill_e4m3_normal(void* out, std::size_t count, float sigma, std::uint64_t seed) { fill<std::uint8_t>(out, count, seed, E4m3Normal{sigma}); }
void fill_e2m1(void* packed, std::size_t bytes, std::uint64_t seed) { fill<std::uint8_t>(packed, bytes, seed, Byte{}); }
void fill_bytes(void* out, std::size_t count, std::uint64_t seed) { fill<std::uint8_t>(out, count, seed, Byte{}); }
void fill_ue8m0(void* out, std::size_t count, int low, int high, std::uint64_t seed) { fill<std::uint8_t>(out, count, seed, Exponent{low, high}); }
void fill_i32_uniform(std::int32_t* out, std::size_t count, std::int32_t low, std::int32_t high, std::uint64_t seed) {
  fill<std::int32_t>(out, count, seed, Uniform{low, high});
}

void poison(void* out, std::size_t bytes) { RACKCAST_CUDA_CHECK(cudaMemset(out, 0xff, bytes)); }
std::size_t count_nan_bf16(const void* data, std::size_t count) { return count_nan(static_cast<const __nv_bfloat16*>(data), count); }
std::size_t count_nan_f32(const float* data, std::size_t count) { return count_nan(data, count); }

}  // namespace rackcast::kernels
