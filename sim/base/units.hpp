// Typed quantities. Dimensions: time, bytes, flops, dollars, energy (joules). Tokens and requests are plain counts.
// Inside hot code a raw double carries its unit last in its name (step_s); borders convert here and nowhere else.
#pragma once
#include <compare>

namespace rackcast {

template <int T, int B, int F, int D, int E>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double base_units) : value_(base_units) {}
  constexpr double value() const { return value_; }  // in base units: s, bytes, flop, USD, J and their products
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator+(Quantity o) const { return Quantity(value_ + o.value_); }
  constexpr Quantity operator-(Quantity o) const { return Quantity(value_ - o.value_); }
  constexpr Quantity operator*(double k) const { return Quantity(value_ * k); }
  constexpr Quantity operator/(double k) const { return Quantity(value_ / k); }
  constexpr Quantity& operator+=(Quantity o) { value_ += o.value_; return *this; }

 private:
  double value_ = 0;
};

template <int T, int B, int F, int D, int E, int T2, int B2, int F2, int D2, int E2>
constexpr auto operator*(Quantity<T, B, F, D, E> a, Quantity<T2, B2, F2, D2, E2> b) {
  return Quantity<T + T2, B + B2, F + F2, D + D2, E + E2>(a.value() * b.value());
}
template <int T, int B, int F, int D, int E, int T2, int B2, int F2, int D2, int E2>
constexpr auto operator/(Quantity<T, B, F, D, E> a, Quantity<T2, B2, F2, D2, E2> b) {
  return Quantity<T - T2, B - B2, F - F2, D - D2, E - E2>(a.value() / b.value());
}

using Seconds = Quantity<1, 0, 0, 0, 0>;
using Bytes = Quantity<0, 1, 0, 0, 0>;
using BytesPerSecond = Quantity<-1, 1, 0, 0, 0>;
using Flops = Quantity<0, 0, 1, 0, 0>;
using FlopsPerSecond = Quantity<-1, 0, 1, 0, 0>;
using Dollars = Quantity<0, 0, 0, 1, 0>;             // also dollars per token
using DollarsPerSecond = Quantity<-1, 0, 0, 1, 0>;   // YAML writes USD/h
using Watts = Quantity<-1, 0, 0, 0, 1>;
using PerSecond = Quantity<-1, 0, 0, 0, 0>;

namespace literals {
constexpr Seconds operator""_s(long double v) { return Seconds(static_cast<double>(v)); }
constexpr Seconds operator""_s(unsigned long long v) { return Seconds(static_cast<double>(v)); }
constexpr Seconds operator""_ms(long double v) { return Seconds(static_cast<double>(v) * 1e-3); }
constexpr Seconds operator""_ms(unsigned long long v) { return Seconds(static_cast<double>(v) * 1e-3); }
constexpr Seconds operator""_us(long double v) { return Seconds(static_cast<double>(v) * 1e-6); }
constexpr Seconds operator""_us(unsigned long long v) { return Seconds(static_cast<double>(v) * 1e-6); }
constexpr Bytes operator""_B(unsigned long long v) { return Bytes(static_cast<double>(v)); }
constexpr Bytes operator""_KiB(unsigned long long v) { return Bytes(static_cast<double>(v) * 1024.0); }
constexpr Bytes operator""_MiB(unsigned long long v) { return Bytes(static_cast<double>(v) * 1024.0 * 1024.0); }
constexpr Bytes operator""_GiB(unsigned long long v) { return Bytes(static_cast<double>(v) * 1024.0 * 1024.0 * 1024.0); }
constexpr Bytes operator""_GB(unsigned long long v) { return Bytes(static_cast<double>(v) * 1e9); }
constexpr BytesPerSecond operator""_GBps(unsigned long long v) { return BytesPerSecond(static_cast<double>(v) * 1e9); }
}  // namespace literals

}  // namespace rackcast
