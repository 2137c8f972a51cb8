#include "sim/trace/start_point.hpp"

#include "sim/base/numpy_random.hpp"
#include "sim/base/sha256.hpp"

namespace rackcast {

double start_share(std::uint64_t seed, const std::string& session_id, std::uint32_t lane, bool wrapped, double low, double high) {
  std::string text = std::to_string(seed) + ":" + session_id;
  if (wrapped) text += ":" + std::to_string(lane);
  std::uint64_t number = 0;
  const auto digest = sha256(text);
  for (std::size_t i = 0; i < 8; ++i) number = (number << 8) | digest[i];
  return NumpyRandom(number).uniform(low, high);
}

}  // namespace rackcast
