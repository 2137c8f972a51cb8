// Fixed request lengths with InferenceX's range ratio: uniform integers in [ratio * nominal, nominal].
#pragma once
#include <cstdint>

#include "sim/base/numpy_random.hpp"

namespace rackcast {

struct LengthOptions {
  std::uint32_t input_tokens = 8192;
  std::uint32_t output_tokens = 1024;
  double range_ratio = 1;
  std::uint32_t output_limit = 0;  // 0: as drawn; 1: prefill only
};

// Smallest length is 1: a request has input and output.
inline std::uint32_t draw_length(std::uint32_t nominal, double ratio, NumpyRandom& random) {
  const auto low = static_cast<std::uint32_t>(ratio * nominal);
  const std::uint32_t drawn = low >= nominal ? nominal : low + static_cast<std::uint32_t>(random.below(nominal - low + 1));
  return drawn == 0 ? 1 : drawn;
}

inline std::uint32_t limited(std::uint32_t output_tokens, std::uint32_t limit) {
  return limit > 0 && output_tokens > limit ? limit : output_tokens;
}

}  // namespace rackcast
