// Launches of the all-to-all kernels. CUDA code only.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kernels/all_to_all_device.cuh"
#include "kernels/all_to_all_routing.hpp"
#include "kernels/device.hpp"

namespace rackcast::a2a {

using kernels::DeviceBuffer;
using kernels::DeviceBytes;
using kernels::Stream;

// One rank's work, ready to launch.
struct Launch {
  RankState state;  // its window member is ignored: the table is used
  PeerTable peers{};
  Knobs knobs{};
  int blocks = 0;
};
void launch_dispatch(const Launch& launch, bool signal, bool wait, Stream stream);
void launch_experts(const Launch& launch, uint32_t epoch, Stream stream);  // 0: of the last dispatch
void launch_combine(const Launch& launch, bool signal, bool wait, Stream stream);
// Ends on every rank at nearly the same time, and then lingers, so that the host can queue what follows.
void launch_barrier(const Launch& launch, uint32_t epoch, uint64_t linger_ns, Stream stream);

// Dispatch, experts and combine of all virtual ranks at once; all blocks run together (cooperative launch).
void launch_round_trip(const RankState* ranks, int count, int blocks_per_rank, const Knobs& knobs, bool shaken, Stream stream);
int blocks_together(bool shaken);  // how many blocks of that launch fit on this GPU at once
void load_all_kernels();           // so that no module is loaded while a peer spins

// out[t] as the CPU reference gives it; gain is of all ranks.
void launch_reference(const Shape& shape, int tokens, const uint16_t* input, const int32_t* expert, const float* weight,
                      const float* gain, uint16_t* out, Stream stream);
// Adds the number of unlike values to *found.
void launch_compare(const uint16_t* a, const uint16_t* b, int64_t count, unsigned long long* found, Stream stream);
// For transports that move rows without flags: what the flags would have said.
void launch_set_flags(const Shape& shape, char* window, uint32_t epoch, const uint32_t* received, Stream stream);

// Everything of one rank but its window.
class RankMemory {
 public:
  RankMemory(const Shape& shape, int rank, const std::vector<float>& gain);
  void load(const RankTokens& tokens, uint64_t input_seed);  // may be loaded again with other tokens, at most tokens_max
  RankState state() const;
  uint16_t* input() const { return input_.data(); }
  uint16_t* output() const { return output_.data(); }
  const int32_t* expert() const { return expert_.data(); }
  const float* weight() const { return weight_.data(); }
  const float* all_gain() const { return gain_.data(); }
  uint32_t* sent() const { return sent_.data(); }
  uint32_t* epoch() const { return epoch_.data(); }
  int tokens() const { return tokens_; }
  // Queues a comparison with the reference: adds the number of output values that differ to *found.
  void compare(unsigned long long* found, Stream stream);
  unsigned long long differences(Stream stream);  // the same, waited for
  // The two epoch counters run apart when one kind of launch runs alone; before a round trip all ranks must agree.
  uint32_t last_epoch() const;
  void set_epoch(uint32_t epoch);

 private:
  Shape shape_;
  int rank_;
  int tokens_ = 0;
  DeviceBuffer<uint16_t> input_, output_, wanted_;
  DeviceBuffer<int32_t> expert_;
  DeviceBuffer<float> weight_, gain_;
  DeviceBuffer<uint64_t> destination_;
  DeviceBuffer<uint32_t> slot_count_, arrived_blocks_, epoch_, sent_;
};

}  // namespace rackcast::a2a
