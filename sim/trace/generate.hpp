// Makes loads of a given shape: seeded, the same bytes for the same shape and seed. Draws are stratified over the whole
// load, so that every seed meets the shape's percentiles and only the pairings differ.
#pragma once
#include <cstdint>

#include "sim/trace/load_shape.hpp"
#include "sim/trace/trace.hpp"

namespace rackcast {

Trace generate_trace(const LoadShape& shape, std::uint64_t seed);

}  // namespace rackcast
