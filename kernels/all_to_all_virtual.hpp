// All ranks of an all-to-all on one GPU: the same kernels over a table of windows that all lie here. Proves the protocol
// on real hardware and measures what a rank does locally; says nothing about NVLink.
#pragma once
#include "kernels/all_to_all_kernels.hpp"

namespace rackcast::a2a {

class VirtualRanks {
 public:
  VirtualRanks(const Shape& shape, uint64_t seed);
  // Draws every rank's tokens and inputs. tokens[r] at most tokens_max.
  void load(const std::string& routing, const std::vector<int>& tokens, uint64_t seed);
  // One epoch of all ranks in one cooperative launch.
  void round_trip(const Knobs& knobs, bool shaken, Stream stream);
  unsigned long long differences(Stream stream);
  // Local work of one rank with the whole GPU: pushes its rows, or fetches its results. Neither signals nor waits.
  void pack(int rank, int blocks, Stream stream) const;
  void reduce(int rank, int blocks, Stream stream) const;
  int blocks_per_rank(bool shaken) const;
  const Shape& shape() const { return shape_; }

 private:
  Shape shape_;
  DeviceBytes windows_;
  std::vector<std::unique_ptr<RankMemory>> ranks_;
  PeerTable table_{};
  DeviceBuffer<char*> device_table_;
  DeviceBuffer<RankState> device_states_;
  DeviceBuffer<unsigned long long> found_;
};

}  // namespace rackcast::a2a
