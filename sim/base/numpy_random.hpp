// numpy's default_rng(seed), bit for bit: SeedSequence feeding PCG64 (XSL-RR). Start points of the AgentX replay are
// drawn with it, so that they equal the ones of the published harness; everything seeded in loads uses it too.
#pragma once
#include <cstdint>

namespace rackcast {

class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint64_t seed);
  std::uint64_t next();                                   // 64 random bits
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // [0, 1), numpy's random()
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  std::uint64_t below(std::uint64_t n);                   // [0, n), by multiply-shift; n >= 1 (not numpy's integers())
  double normal();                                        // standard normal by inversion of one uniform (not numpy's ziggurat)

 private:
  __extension__ using Wide = unsigned __int128;
  Wide state_ = 0, increment_ = 0;
};

// Inverse of the standard normal distribution function, relative error below 1.2e-9 (P. J. Acklam, 2003). 0 < p < 1.
double normal_quantile(double p);

}  // namespace rackcast
