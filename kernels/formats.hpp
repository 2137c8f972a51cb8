// The small number formats on the host, exactly. Codes of NaN (e4m3 0x7f, 0xff) give NaN.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rackcast::kernels {

inline double e4m3_value(std::uint8_t code) {
  const int exponent = (code >> 3) & 15, mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code & 0x80 ? -magnitude : magnitude;
}

// The step between neighbouring e4m3 values around a magnitude.
inline double e4m3_step(double magnitude) {
  const int exponent = magnitude > 0 ? std::ilogb(magnitude) : -6;
  return std::ldexp(1.0, (exponent < -6 ? -6 : exponent) - 3);
}

// The nearest e4m3 code, ties to even, saturating at 448.
inline std::uint8_t e4m3_code(double value) {
  const double magnitude = std::abs(value);
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (magnitude >= 448) return sign | 0x7e;
  const double step = e4m3_step(magnitude);
  const double rounded = std::nearbyint(magnitude / step) * step;  // ties to even in the default rounding mode
  if (rounded >= 448) return sign | 0x7e;
  if (rounded < std::ldexp(1.0, -6)) return static_cast<std::uint8_t>(sign | static_cast<int>(rounded * 512));
  const int exponent = std::ilogb(rounded);
  return static_cast<std::uint8_t>(sign | ((exponent + 7) << 3) | (static_cast<int>(std::ldexp(rounded, 3 - exponent)) & 7));
}

// The smallest power of two that keeps amax within e4m3's 448 (amax below 1e-10 counts as 1e-10).
inline double e4m3_power_scale(double amax) { return std::exp2(std::ceil(std::log2(std::max(amax, 1e-10) / 448))); }

inline double e2m1_value(unsigned code) {
  constexpr std::array<double, 8> magnitudes = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

inline double ue8m0_value(std::uint8_t code) { return std::ldexp(1.0, code - 127); }

}  // namespace rackcast::kernels
