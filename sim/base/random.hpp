// Seeds by name: every use of chance has a stream of its own, so that one more draw in one place moves no other.
#pragma once
#include <cstdint>
#include <string_view>

#include "sim/base/numpy_random.hpp"

namespace rackcast {

// A well-mixed seed for the stream `name` of a run (FNV-1a of the name, mixed with the run's seed by SplitMix64).
std::uint64_t stream_seed(std::uint64_t run_seed, std::string_view name);

// The stream `name`, or its index-th sibling ("lane", 17).
NumpyRandom random_stream(std::uint64_t run_seed, std::string_view name, std::uint64_t index = 0);

}  // namespace rackcast
