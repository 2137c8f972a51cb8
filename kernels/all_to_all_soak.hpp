// Long runs of virtual ranks under seeded delays, for tests on a GPU. No CUDA headers.
#pragma once
#include <cstdint>

#include "kernels/all_to_all_layout.hpp"

namespace rackcast::a2a {

bool gpu_here();

struct SoakResult {
  int epochs = 0;
  long long tokens = 0;
  unsigned long long differences = 0;  // from the reference, over all epochs
  bool hung = false;                   // a flag never came
};
// Routings take turns (balanced, Zipf 1.4, all to one); each rank has 0 to tokens_max tokens in every sixteenth epoch and
// 0 to 48 in the others. release_left_out is the mutation that has to be noticed.
SoakResult soak_virtual_ranks(const Shape& shape, int epochs, uint64_t seed, bool release_left_out);

// Values in which the GPU's reference differs from the CPU's.
unsigned long long reference_differences(const Shape& shape, int tokens, uint64_t seed);

}  // namespace rackcast::a2a
