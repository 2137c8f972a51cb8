#include "kernels/all_to_all_virtual.hpp"

#include <algorithm>

#include "kernels/all_to_all_reference.hpp"
#include "sim/base/error.hpp"

namespace rackcast::a2a {

VirtualRanks::VirtualRanks(const Shape& shape, uint64_t seed) : shape_(shape) {
  const char* problem = shape_problem(shape);
  RACKCAST_CHECK(problem == nullptr && shape.ranks <= peers_max, problem ? problem : "too many ranks");
  const auto stride = static_cast<std::size_t>((shape.window_bytes() + 255) / 256 * 256);
  windows_ = DeviceBytes(stride * static_cast<std::size_t>(shape.ranks));
  RACKCAST_CUDA_CHECK(cudaMemset(windows_.data(), 0, windows_.bytes()));
  const std::vector<float> gain = draw_gain(shape, seed);
  std::vector<char*> bases;
  for (int r = 0; r < shape.ranks; ++r) {
    table_.base[r] = reinterpret_cast<char*>(windows_.data()) + stride * static_cast<std::size_t>(r);
    bases.push_back(table_.base[r]);
    ranks_.push_back(std::make_unique<RankMemory>(shape, r, gain));
  }
  device_table_ = DeviceBuffer<char*>(std::span<char* const>(bases));
  device_states_ = DeviceBuffer<RankState>(static_cast<std::size_t>(shape.ranks));
}

void VirtualRanks::load(const std::string& routing, const std::vector<int>& tokens, uint64_t seed) {
  std::vector<RankState> states;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r]->load(draw_tokens(shape_, routing, tokens[r], seed * 4096 + r), seed * 4096 + r + 2048);
    states.push_back(ranks_[r]->state());
    states.back().window = device_table_.data();
  }
  device_states_.assign(states);
}

int VirtualRanks::blocks_per_rank(bool shaken) const { return std::clamp(blocks_together(shaken) / shape_.ranks, 1, 32); }

void VirtualRanks::round_trip(const Knobs& knobs, bool shaken, Stream stream) {
  launch_round_trip(device_states_.data(), shape_.ranks, blocks_per_rank(shaken), knobs, shaken, stream);
}

unsigned long long VirtualRanks::differences(Stream stream) {
  if (found_.size() == 0) found_ = DeviceBuffer<unsigned long long>(1);
  RACKCAST_CUDA_CHECK(cudaMemsetAsync(found_.data(), 0, found_.bytes(), stream));
  for (const auto& rank : ranks_) rank->compare(found_.data(), stream);
  RACKCAST_CUDA_CHECK(cudaStreamSynchronize(stream));
  return found_.to_host()[0];
}

void VirtualRanks::pack(int rank, int blocks, Stream stream) const {
  launch_dispatch({ranks_[static_cast<std::size_t>(rank)]->state(), table_, {}, blocks}, false, false, stream);
}
void VirtualRanks::reduce(int rank, int blocks, Stream stream) const {
  launch_combine({ranks_[static_cast<std::size_t>(rank)]->state(), table_, {}, blocks}, false, false, stream);
}

}  // namespace rackcast::a2a
