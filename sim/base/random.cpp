#include "sim/base/random.hpp"

namespace rackcast {

// SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection whose every output bit depends on every input bit.
static std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

std::uint64_t stream_seed(std::uint64_t run_seed, std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a, 64 bits
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return mixed(mixed(run_seed) ^ hash);
}

NumpyRandom random_stream(std::uint64_t run_seed, std::string_view name, std::uint64_t index) {
  return NumpyRandom(index == 0 ? stream_seed(run_seed, name) : mixed(stream_seed(run_seed, name) ^ mixed(index)));
}

}  // namespace rackcast
