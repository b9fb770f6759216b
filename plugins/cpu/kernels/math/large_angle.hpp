// SPDX-License-Identifier: Apache-2.0
// Reduction modulo 2 pi of floats too large for multiples of pi/2 to be subtracted.
#pragma once

#include "math/bits.hpp"
#include "math/reduction_table.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math::detail {

// x = quadrant * pi/2 + r, |r| <= pi/4; the low bits of `quadrant` count.
template <Float T>
struct Angle {
  T r;
  Bits<T> quadrant;
};

// A large argument is m * 2^s with a 24-bit m, so that m * (2^s mod 2 pi) is congruent to it and
// below 2^26, which a three-part pi/2 in double reduces.
TENON_INLINE Angle<float> reduce_large(float x) {
  const int32_t excess = static_cast<int32_t>((bits_of(x) >> 23) & 0xff) - 150;
  const int32_t s = excess & ~(excess >> 31);  // max(excess, 0), which the compiler would branch on
  const double m = x * float_of(static_cast<uint32_t>(127 - s) << 23);
  const double high = m * kPowersModTwoPiHigh[s];
  const double low = m * kPowersModTwoPiLow[s];
  const double turns = high * 0.6366197723675814 + kRound<double>;
  const double n = turns - kRound<double>;
  double r = high - n * 1.570796325802803;
  r -= n * 9.920935739593517e-10;
  r += low - n * 5.721188726109832e-18;
  return {static_cast<float>(r), static_cast<uint32_t>(bits_of(turns))};
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math::detail
