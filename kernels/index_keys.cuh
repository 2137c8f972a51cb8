// fp4 index keys as the fp8 products want them. A key's four scales become one: every group of 32 values is shifted to the
// largest scale, which e4m3 holds exactly down to 2^-12 of it; smaller groups count nothing beside it.
#pragma once
#include "kernels/device.cuh"

namespace rackcast::kernels {

constexpr int index_shift_max = 12;  // 6 * 2^(12 - 6) = 384 is the largest that e4m3 holds

// e4m3 codes of the eight magnitudes 0 0.5 1 1.5 2 3 4 6, times 2^(shift - 6).
struct MagnitudeTable {
  std::uint32_t low, high;
};
__device__ inline MagnitudeTable magnitude_table(int shift) {
  if (shift < 0) return {0, 0};
  if (shift == 0) return {0x0c080400u, 0x1c181410u};
  const auto steps = static_cast<std::uint32_t>(shift);
  return {0x08080800u * steps + 0x0c080000u, 0x08080808u * steps + 0x1c181410u};
}

// Eight e2m1 codes -> eight e4m3 codes.
__device__ inline uint2 expand_e2m1(std::uint32_t codes, const MagnitudeTable& table) {
  const std::uint32_t size = codes & 0x77777777u, sign = (codes >> 3) & 0x11111111u;
  uint2 out;
  out.x = __byte_perm(table.low, table.high, size) | __byte_perm(0x00008000u, 0, sign);
  out.y = __byte_perm(table.low, table.high, size >> 16) | __byte_perm(0x00008000u, 0, sign >> 16);
  return out;
}

// scales: four UE8M0 codes. The shift of group g, and the scale that the key keeps.
__device__ inline int largest_code(std::uint32_t scales) {
  const std::uint32_t pair = __vmaxu4(scales, scales >> 16);
  return static_cast<int>(__vmaxu4(pair, pair >> 8) & 0xffu);
}
__device__ inline int shift_of(std::uint32_t scales, int group, int largest) {
  return index_shift_max - (largest - static_cast<int>((scales >> (8 * group)) & 0xffu));
}
__device__ inline float key_scale(int largest) {  // 2^(largest - 127 + 6 - 12)
  return __uint_as_float(static_cast<std::uint32_t>(max(largest - (index_shift_max - 6), 1)) << 23);
}

}  // namespace rackcast::kernels
