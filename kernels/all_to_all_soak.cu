#include "kernels/all_to_all_soak.hpp"

#include <algorithm>

#include "kernels/all_to_all_reference.hpp"
#include "kernels/all_to_all_virtual.hpp"
#include "kernels/draws.hpp"

namespace rackcast::a2a {

bool gpu_here() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

SoakResult soak_virtual_ranks(const Shape& shape, int epochs, uint64_t seed, bool release_left_out) {
  VirtualRanks ranks(shape, seed);
  const kernels::StreamOwner stream;
  DeviceBuffer<Fault> fault(1);
  RACKCAST_CUDA_CHECK(cudaMemset(fault.data(), 0, fault.bytes()));
  Draws draws(seed);
  SoakResult result;
  const char* routings[] = {"balanced", "zipf1.4", "all_to_one"};
  for (int e = 0; e < epochs && !result.hung; ++e) {
    const auto most = static_cast<uint64_t>(e % 16 == 15 ? shape.tokens_max : std::min(shape.tokens_max, 48));
    std::vector<int> tokens;
    for (int r = 0; r < shape.ranks; ++r) tokens.push_back(static_cast<int>(draws.below(most + 1)));
    ranks.load(routings[e % 3], tokens, seed * 100000 + static_cast<uint64_t>(e));
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    Knobs knobs;
    knobs.fault = fault.data();
    knobs.delay_seed = seed * 7919 + static_cast<uint64_t>(e) + 1;
    knobs.release_left_out = release_left_out ? 1 : 0;
    ranks.round_trip(knobs, true, stream.get());
    result.differences += ranks.differences(stream.get());
    result.hung = fault.to_host()[0].set != 0;
    for (const int t : tokens) result.tokens += t;
    ++result.epochs;
  }
  return result;
}

unsigned long long reference_differences(const Shape& shape, int tokens, uint64_t seed) {
  const std::vector<float> gain = draw_gain(shape, seed);
  const RankTokens drawn = draw_tokens(shape, "balanced", tokens, seed);
  const std::vector<uint16_t> input = draw_input(shape, tokens, seed);
  const DeviceBuffer<uint16_t> device_input{std::span<const uint16_t>(input)};
  const DeviceBuffer<int32_t> expert{std::span<const int32_t>(drawn.expert)};
  const DeviceBuffer<float> weight{std::span<const float>(drawn.weight)};
  const DeviceBuffer<float> device_gain{std::span<const float>(gain)};
  const DeviceBuffer<uint16_t> out(input.size());
  launch_reference(shape, tokens, device_input.data(), expert.data(), weight.data(), device_gain.data(), out.data(), nullptr);
  const std::vector<uint16_t> on_gpu = out.to_host();
  const std::vector<uint16_t> on_cpu = reference(shape, drawn, input, gain);
  unsigned long long differences = 0;
  for (std::size_t i = 0; i < on_cpu.size(); ++i) differences += on_gpu[i] != on_cpu[i];
  return differences;
}

}  // namespace rackcast::a2a
