// SPDX-License-Identifier: Apache-2.0
// Functions of every arithmetic type: division without traps, rounding, comparison, selection.
#pragma once

#include "math/bits.hpp"
#include "math/remainder.hpp"

#include <bit>
#include <cmath>
#include <complex>
#include <concepts>
#include <type_traits>

namespace tenon::cpu::TENON_CPU_ISA::math {

template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;
template <class T>
concept Real = std::floating_point<T>;
template <class T>
concept Number = std::integral<T> || std::floating_point<T>;

// -- division. An integer divided by zero is 0, and the lowest integer by -1 wraps, as in NumPy. ------
template <class T>
inline T div(T x, T y) {
  if constexpr (std::integral<T>) {
    if (y == 0) return 0;
    if constexpr (std::signed_integral<T>) {
      if (y == -1) return static_cast<T>(-static_cast<std::make_unsigned_t<T>>(x));
    }
  }
  return static_cast<T>(x / y);
}

// Remainder with the sign of x.
template <Number T>
inline T fmod(T x, T y) {
  if constexpr (std::integral<T>) {
    if (y == 0) return 0;
    if constexpr (std::signed_integral<T>) {
      if (y == -1) return 0;
    }
    return static_cast<T>(x % y);
  } else {
    return float_fmod(x, y);
  }
}
template <Number T>
inline T rem(T x, T y) {
  return fmod(x, y);
}

// Remainder with the sign of y, and the quotient that belongs to it.
template <Number T>
inline T floormod(T x, T y) {
  const T r = fmod(x, y);
  if constexpr (std::floating_point<T>) {
    return floormod_from(r, y);
  } else if constexpr (std::unsigned_integral<T>) {
    return r;
  } else {
    return r != 0 && (r < 0) != (y < 0) ? static_cast<T>(r + y) : r;
  }
}
template <Number T>
inline T floordiv(T x, T y) {
  if constexpr (std::floating_point<T>) {
    if (y == T(0)) return x / y;
    return floordiv_from(float_fmod(x, y), x, y);
  } else if constexpr (std::unsigned_integral<T>) {
    return div(x, y);
  } else {
    const T quotient = div(x, y);
    if (y == 0) return 0;
    return fmod(x, y) != 0 && (x < 0) != (y < 0) ? static_cast<T>(quotient - 1) : quotient;
  }
}

// Stein's binary algorithm (1967). The result wraps where it is the magnitude of the smallest integer.
template <std::integral T>
inline T gcd(T x, T y) {
  using Unsigned = std::make_unsigned_t<T>;
  auto a = static_cast<Unsigned>(x < 0 ? Unsigned(0) - Unsigned(x) : Unsigned(x));
  auto b = static_cast<Unsigned>(y < 0 ? Unsigned(0) - Unsigned(y) : Unsigned(y));
  if (a == 0 || b == 0) return static_cast<T>(a | b);
  const int twos = std::countr_zero(static_cast<Unsigned>(a | b));
  a = static_cast<Unsigned>(a >> std::countr_zero(a));
  while (b != 0) {
    b = static_cast<Unsigned>(b >> std::countr_zero(b));
    const Unsigned larger = std::max(a, b);
    a = std::min(a, b);
    b = static_cast<Unsigned>(larger - a);
  }
  return static_cast<T>(a << twos);
}

// -- shifts: by too much gives 0 (or the sign), by a negative count 0 ----------------------------------
template <std::integral T>
inline T shift_left(T x, T y) {
  constexpr T width = sizeof(T) * 8;
  return y >= 0 && y < width ? static_cast<T>(static_cast<uint64_t>(x) << y) : T(0);
}
template <std::integral T>
inline T shift_right(T x, T y) {
  constexpr T width = sizeof(T) * 8;
  if (y < 0) return T(0);
  return static_cast<T>(x >> (y < width ? y : width - 1)) &
         static_cast<T>(std::signed_integral<T> || y < width ? ~T(0) : T(0));
}

// -- sign and magnitude ----------------------------------------------------------------------------------
template <Number T>
inline T abs(T x) {
  if constexpr (std::unsigned_integral<T>) {
    return x;
  } else if constexpr (std::floating_point<T>) {
    return std::fabs(x);
  } else {
    return static_cast<T>(x < 0 ? -x : x);
  }
}
template <Number T>
inline T sign(T x) {
  if constexpr (std::floating_point<T>) {
    const T direction = static_cast<T>((x > T(0)) - (x < T(0)));
    return x != x ? x : direction;
  } else {
    return static_cast<T>((x > T(0)) - (x < T(0)));
  }
}
template <Real T>
inline T copysign(T x, T y) {
  return std::copysign(x, y);
}
// The bits of a number, as an integer, grow with its magnitude. The chain of choices is one that
// compilers vectorise.
template <Real T>
inline T nextafter(T x, T y) {
  using Bits = detail::Bits<T>;
  const bool grows = (x < y) == (x > T(0));
  const T next = std::bit_cast<T>(std::bit_cast<Bits>(x) + (grows ? Bits(1) : ~Bits(0)));
  const T from_zero = std::copysign(std::numeric_limits<T>::denorm_min(), y);
  const T moved = x == T(0) ? from_zero : next;
  const T number = x == y ? y : moved;
  return (x != x) | (y != y) ? x + y : number;
}

// -- rounding; integers are whole already ------------------------------------------------------------------
template <Number T>
inline T floor(T x) {
  if constexpr (std::floating_point<T>) return std::floor(x);
  return x;
}
template <Number T>
inline T ceil(T x) {
  if constexpr (std::floating_point<T>) return std::ceil(x);
  return x;
}
template <Number T>
inline T trunc(T x) {
  if constexpr (std::floating_point<T>) return std::trunc(x);
  return x;
}
template <Number T>
inline T round(T x) {  // halves to even
  if constexpr (std::floating_point<T>) return std::nearbyint(x);
  return x;
}

// min and max propagate NaN, fmin and fmax prefer a number. The functions are written as two
// selections, which compilers turn into an instruction and a blend; one selection by two conditions
// becomes branches.
template <Number T>
inline T min(T x, T y) {
  const T lesser = x < y ? x : y;  // y if either is NaN
  if constexpr (std::floating_point<T>) return x != x ? x : lesser;
  return lesser;
}
template <Number T>
inline T max(T x, T y) {
  const T greater = x > y ? x : y;
  if constexpr (std::floating_point<T>) return x != x ? x : greater;
  return greater;
}
template <Number T>
inline T fmin(T x, T y) {
  const T lesser = x < y ? x : y;
  if constexpr (std::floating_point<T>) return y != y ? x : lesser;
  return lesser;
}
template <Number T>
inline T fmax(T x, T y) {
  const T greater = x > y ? x : y;
  if constexpr (std::floating_point<T>) return y != y ? x : greater;
  return greater;
}

// -- classification -----------------------------------------------------------------------------------------
template <Number T>
inline bool isnan(T x) {
  return x != x;
}
template <Number T>
inline bool isinf(T x) {
  if constexpr (std::floating_point<T>) return std::fabs(x) == std::numeric_limits<T>::infinity();
  return false;
}
template <Number T>
inline bool isfinite(T x) {
  if constexpr (std::floating_point<T>) return std::fabs(x) < std::numeric_limits<T>::infinity();
  return true;
}

// -- parts of a number that is its own real part --------------------------------------------------------------
template <Number T>
inline T conj(T x) {
  return x;
}
template <Number T>
inline T real(T x) {
  return x;
}
template <Number T>
inline T imag(T) {
  return T(0);
}

// A constant of an expression. Arithmetic with subnormal numbers takes a hundred cycles on many processors, and
// what they would add is not seen in a sum.
template <Real T>
constexpr T normal_or_zero(double x) {
  return (x < 0 ? -x : x) < double(std::numeric_limits<T>::min()) ? T(0) : static_cast<T>(x);
}

template <class T>
inline T select(bool condition, T x, T y) {
  return condition ? x : y;
}

// Integer powers wrap; a negative exponent leaves only 1 and -1 alive.
template <std::integral T>
inline T pow(T x, T y) {
  if (y < 0) return x == 1 ? T(1) : (x == T(-1) ? ((y & 1) != 0 ? T(-1) : T(1)) : T(0));
  uint64_t result = 1, base = static_cast<uint64_t>(x);
  for (uint64_t n = static_cast<uint64_t>(y); n != 0; n >>= 1) {
    if (n & 1) result *= base;
    base *= base;
  }
  return static_cast<T>(result);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
