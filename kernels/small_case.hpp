// What the cases of the small kernels share: inputs, rows to look at, the cases that have files of their own. Only for CUDA builds.
#pragma once
#include <algorithm>

#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/formats.hpp"
#include "kernels/small.hpp"
#include "kernels/small_device.hpp"

namespace rackcast::kernels {

std::unique_ptr<Case> hyper_connection_case(bool pre, int tokens, int hidden, const PrepareOptions& options);
std::unique_ptr<Case> verify_case(int rows, int vocabulary, const PrepareOptions& options);

using Bf16 = DeviceBuffer<std::uint16_t>;

inline Bf16 random_bf16(std::size_t count, std::uint64_t seed, float sigma = 1.0f) {
  Bf16 buffer(count);
  fill_bf16_normal(buffer.data(), count, sigma, seed);
  return buffer;
}
inline DeviceBuffer<float> random_floats(std::size_t count, std::uint64_t seed, float sigma = 1.0f) {
  DeviceBuffer<float> buffer(count);
  fill_f32_normal(buffer.data(), count, sigma, seed);
  return buffer;
}
inline std::vector<double> as_doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }
inline std::vector<double> part_of(const Bf16& matrix, std::size_t first, std::size_t count) {
  std::vector<std::uint16_t> raw(count);
  copy_to_host(raw.data(), matrix.data() + first, count * 2);
  std::vector<double> values(count);
  std::transform(raw.begin(), raw.end(), values.begin(), bf16_to_double);
  return values;
}
// First, last and six tokens between.
inline std::vector<std::size_t> some(std::size_t tokens, std::uint64_t seed) {
  std::vector<std::size_t> picks = {0, tokens - 1};
  for (std::uint64_t i = 0; i < 6; ++i) picks.push_back(random_bits(seed, i) % tokens);
  return picks;
}
inline CheckResult with_all_written(CheckResult result, const Bf16& out) {
  if (result.ok && count_nan_bf16(out.data(), out.size())) {
    result.ok = false;
    result.note = "not every output was written";
  }
  return result;
}
inline void append(std::vector<double>& to, const std::vector<double>& more) { to.insert(to.end(), more.begin(), more.end()); }

// Launches, then everything is on the host's side of a synchronisation.
inline void launch_and_wait(Case& one) {
  RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
  one.launch(0, nullptr);
  RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace rackcast::kernels
