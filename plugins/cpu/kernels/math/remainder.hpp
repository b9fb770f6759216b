// SPDX-License-Identifier: Apache-2.0
// Remainders of floating-point numbers. Where the quotient is small, one division and one fused
// multiplication give the exact remainder that std::fmod finds bit by bit.
#pragma once

#include "math/bits.hpp"

#include <bit>
#include <cmath>
#include <limits>

#if defined(__FMA__) || defined(__AVX512F__) || defined(__ARM_FEATURE_FMA)
#define TENON_HAS_FMA
#endif

namespace tenon::cpu::TENON_CPU_ISA::math {

// x, or -x if y is negative. Comparisons of the result tell whether signs differ; comparing both numbers
// with 0 would keep loops from being vectorised.
template <Float T>
TENON_INLINE T negated_with(T x, T y) {
  using Bits = detail::Bits<T>;
  constexpr Bits sign = Bits(1) << (sizeof(T) * 8 - 1);
  return std::bit_cast<T>(std::bit_cast<Bits>(x) ^ (std::bit_cast<Bits>(y) & sign));
}

#ifdef TENON_HAS_FMA
// Below it, every whole number and its neighbours are exact. Zero, infinite and NaN divisors and
// numerators have a quotient that is not below it, but for an infinite divisor.
template <Float T>
inline constexpr T kLargestQuotient = T(int64_t{1} << (std::numeric_limits<T>::digits - 2));

template <Float T>
TENON_INLINE bool has_small_quotient(T x, T y) {
  return (std::fabs(x / y) < kLargestQuotient<T>)&(std::fabs(y) <= std::numeric_limits<T>::max());
}

// fmod of numbers with a small quotient. x - q * y is a multiple of the smaller one's last bit and
// smaller than y, so the fused multiplication does not round it. The quotient may have been rounded
// up to a whole number: the remainder then has the other sign, and y brings it back exactly.
template <Float T>
TENON_INLINE T small_fmod(T x, T y) {
  const T r = std::fma(-std::trunc(x / y), y, x);
  const T forward = negated_with(r, x);
  return std::copysign(forward < T(0) ? forward + std::fabs(y) : forward, x);
}
#endif

template <Float T>
inline T float_fmod(T x, T y) {
#ifdef TENON_HAS_FMA
  if (has_small_quotient(x, y)) return small_fmod(x, y);
#endif
  return std::fmod(x, y);
}

// The remainder with the sign of y, and the quotient that belongs to it, from r = fmod(x, y).
template <Float T>
TENON_INLINE T floormod_from(T r, T y) {
  const T moved = negated_with(r, y) < T(0) ? r + y : r;
  return r == T(0) ? std::copysign(T(0), y) : moved;
}
template <Float T>
TENON_INLINE T floordiv_from(T r, T x, T y) {
  const T quotient = (x - r) / y - (negated_with(r, y) < T(0) ? T(1) : T(0));
  const T whole = std::floor(quotient);
  const T nearest = quotient - whole > T(0.5) ? whole + T(1) : whole;
  return quotient == T(0) ? std::copysign(T(0), x / y) : nearest;
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
