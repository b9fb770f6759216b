// SPDX-License-Identifier: Apache-2.0
// Building blocks of the functions of float and double: bit casts, polynomials, powers of two.
//
// Everything in math/ is written so that g++ turns a loop over it into vector code: no branches
// (both sides of a choice are computed), `&` and `|` between conditions, no calls into libm,
// everything inlined, and of 64-bit integers only what AVX2 has: sums, bitwise operations and
// logical shifts.
#pragma once

#include "simd/isa.hpp"

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <utility>

// A function that is not inlined keeps the loop around it scalar.
#define TENON_INLINE [[gnu::always_inline]] inline

namespace tenon::cpu::TENON_CPU_ISA::math {

template <class T>
concept Float = std::same_as<T, float> || std::same_as<T, double>;

template <Float T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <Float T>
inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

namespace detail {

// IEEE 754 binary32 and binary64.
template <Float T>
struct Format;
template <>
struct Format<float> {
  using Bits = uint32_t;
  static constexpr int kMantissaBits = 23, kBias = 127;
  static constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
};
template <>
struct Format<double> {
  using Bits = uint64_t;
  static constexpr int kMantissaBits = 52, kBias = 1023;
  static constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
};
template <Float T>
using Bits = typename Format<T>::Bits;
template <Float T>
inline constexpr Bits<T> kSignBit = Bits<T>{1} << (sizeof(T) * 8 - 1);

template <Float T>
TENON_INLINE constexpr Bits<T> bits_of(T x) {
  return std::bit_cast<Bits<T>>(x);
}
TENON_INLINE float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }
TENON_INLINE double float_of(uint64_t bits) { return std::bit_cast<double>(bits); }

template <Float T>
TENON_INLINE bool is_negative(T x) {
  return bits_of(x) >= kSignBit<T>;
}
template <Float T>
TENON_INLINE T absolute(T x) {
  return float_of(bits_of(x) & ~kSignBit<T>);
}
template <Float T>
TENON_INLINE T with_sign(T magnitude, T sign) {
  return float_of((bits_of(magnitude) & ~kSignBit<T>) | (bits_of(sign) & kSignBit<T>));
}

// c0 + c2 x + c4 x^2 + ...
template <Float T>
TENON_INLINE T every_second(T, T c0) {
  return c0;
}
template <Float T>
TENON_INLINE T every_second(T, T c0, T) {
  return c0;
}
template <Float T, class... C>
TENON_INLINE T every_second(T x, T c0, T, C... rest) {
  return every_second(x, rest...) * x + c0;
}

// Coefficients from the constant term upwards. Even and odd terms by themselves: one chain of
// dependent products would leave the processor waiting.
template <Float T, class... C>
TENON_INLINE T polynomial(T x, T c0, C... rest) {
  const T square = x * x;
  return every_second(square, rest...) * x + every_second(square, c0, rest...);
}

// The same with an array of coefficients, which the vectorised functions share.
template <Float T, int... I>
TENON_INLINE T polynomial_of(T x, const T* c, std::integer_sequence<int, I...>) {
  return polynomial(x, c[I]...);
}
template <Float T, int N>
TENON_INLINE T polynomial_of(T x, const T (&coefficients)[N]) {
  return polynomial_of(x, coefficients, std::make_integer_sequence<int, N>());
}

// Adding `kRound` rounds to the nearest integer, which then sits in the low bits of the sum.
template <Float T>
inline constexpr T kRound = Format<T>::kRound;

// A power of two: the low bits hold n + 2 * bias, so that they make exponent fields with few
// instructions. The sum of a whole n and kPowerRound is one.
template <Float T>
inline constexpr T kPowerRound = kRound<T> + 2 * Format<T>::kBias;

// 2^(n - less), for results in the range of normal numbers.
template <Float T>
TENON_INLINE T power_of_two(T power, int less = 0) {
  constexpr int shift = Format<T>::kMantissaBits;
  return float_of((bits_of(power) - static_cast<Bits<T>>(Format<T>::kBias + less)) << shift);
}

// x * 2^n in two steps, so that neither factor overflows and denormal results round once.
template <Float T>
TENON_INLINE T scale(T x, T power) {
  constexpr int shift = Format<T>::kMantissaBits;
  const Bits<T> all = bits_of(power), half = all >> 1;
  return x * float_of(half << shift) * float_of((all - half) << shift);
}

TENON_INLINE float root(float x) { return __builtin_sqrtf(x); }
TENON_INLINE double root(double x) { return __builtin_sqrt(x); }

// NaN stays NaN.
template <Float T>
TENON_INLINE T at_least(T x, T low) {
  return x < low ? low : x;
}
template <Float T>
TENON_INLINE T at_most(T x, T high) {
  return x > high ? high : x;
}
template <Float T>
TENON_INLINE T clamp(T x, T low, T high) {
  return at_most(at_least(x, low), high);
}

// x * y + z, rounded once where the processor can: for sums after a choice, which the compiler
// would contract in one place and not in another.
template <Float T>
TENON_INLINE T multiply_add(T x, T y, T z) {
#ifdef TENON_CPU_FMA
  if constexpr (std::same_as<T, float>)
    return __builtin_fmaf(x, y, z);
  else
    return __builtin_fma(x, y, z);
#else
  return x * y + z;
#endif
}

// The rounding error of x * y, exactly.
template <Float T>
TENON_INLINE T product_error(T x, T y, T product) {
#ifdef TENON_CPU_FMA
  return multiply_add(x, y, -product);
#else
  // Dekker, "A floating-point technique for extending the available precision" (1971).
  constexpr T split = static_cast<T>((uint64_t{1} << ((Format<T>::kMantissaBits + 2) / 2)) + 1);
  const T xs = x * split, ys = y * split;
  const T x_high = xs - (xs - x), y_high = ys - (ys - y);
  const T x_low = x - x_high, y_low = y - y_high;
  return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low;
#endif
}

}  // namespace detail
}  // namespace tenon::cpu::TENON_CPU_ISA::math
