// FP8 with block scales on the host, bit for bit what the GPU does: e4m3 values, one power-of-two scale per 32 values.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace rackcast {

inline float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
inline uint16_t float_to_bf16(float value) {  // round to nearest even; no NaN in our data
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

inline float e4m3_to_float(uint8_t code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// Round to nearest even, saturating at 448.
inline uint8_t float_to_e4m3(float value) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const float magnitude = std::fabs(value);
  if (magnitude >= 464.0F) return static_cast<uint8_t>(sign | 0x7e);
  if (magnitude == 0.0F) return sign;
  const int exponent = std::max(std::ilogb(magnitude), -6);
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 3 - exponent)));  // 8..16, or 0..8 below 2^-6
  int code = (exponent + 7) * 8 + steps - 8;  // a carry into the exponent comes out right by itself
  if (exponent == -6) code = steps;
  return static_cast<uint8_t>(sign | std::min(code, 0x7e));
}

// Exponent byte of the smallest power of two that brings `largest` to at most 448.
inline uint8_t ue8m0_for(float largest) {
  if (largest == 0.0F) return 127;
  const float ratio = largest * (1.0F / 448.0F);
  const uint32_t bits = std::bit_cast<uint32_t>(ratio);
  return static_cast<uint8_t>(std::max((bits >> 23) + ((bits & 0x7fffffU) != 0 ? 1U : 0U), 1U));
}
inline float ue8m0_to_float(uint8_t code) { return std::bit_cast<float>(static_cast<uint32_t>(code) << 23); }  // code 1..254

}  // namespace rackcast
