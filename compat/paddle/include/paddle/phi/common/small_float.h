// SPDX-License-Identifier: Apache-2.0
// What float16.h and bfloat16.h share: a 16-bit float that computes in float32.
//
// Construction is explicit and conversion to float implicit, so that mixed expressions become float
// and only two operands of the same type stay in it.
#pragma once

#include <paddle/common/hostdevice.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace phi {
namespace dtype {
namespace detail {

inline uint32_t float_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float bits_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace detail
}  // namespace dtype
}  // namespace phi

// The members and operators of NAME, which has `static uint16_t encode(float)` and
// `static float decode(uint16_t)`.
#define PHI_SMALL_FLOAT_MEMBERS(NAME)                                                             \
  uint16_t x;                                                                                     \
  NAME() = default;                                                                               \
  HOSTDEVICE explicit NAME(float value) : x(encode(value)) {}                                     \
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value &&        \
                                                           !std::is_same<T, float>::value>::type> \
  HOSTDEVICE explicit NAME(T value) : NAME(static_cast<float>(value)) {}                          \
  HOSTDEVICE operator float() const { return decode(x); }                                         \
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>   \
  NAME& operator=(T value) {                                                                      \
    return *this = NAME(value);                                                                   \
  }                                                                                               \
  static NAME from_bits(uint16_t bits) {                                                          \
    NAME result;                                                                                  \
    result.x = bits;                                                                              \
    return result;                                                                                \
  }                                                                                               \
  NAME& operator+=(NAME b) { return *this = NAME(float(*this) + float(b)); }                      \
  NAME& operator-=(NAME b) { return *this = NAME(float(*this) - float(b)); }                      \
  NAME& operator*=(NAME b) { return *this = NAME(float(*this) * float(b)); }                      \
  NAME& operator/=(NAME b) { return *this = NAME(float(*this) / float(b)); }                      \
  friend NAME operator+(NAME a, NAME b) { return NAME(float(a) + float(b)); }                     \
  friend NAME operator-(NAME a, NAME b) { return NAME(float(a) - float(b)); }                     \
  friend NAME operator*(NAME a, NAME b) { return NAME(float(a) * float(b)); }                     \
  friend NAME operator/(NAME a, NAME b) { return NAME(float(a) / float(b)); }                     \
  friend NAME operator-(NAME a) { return from_bits(a.x ^ 0x8000u); }                              \
  friend bool operator==(NAME a, NAME b) { return float(a) == float(b); }                         \
  friend bool operator!=(NAME a, NAME b) { return float(a) != float(b); }                         \
  friend bool operator<(NAME a, NAME b) { return float(a) < float(b); }                           \
  friend bool operator<=(NAME a, NAME b) { return float(a) <= float(b); }                         \
  friend bool operator>(NAME a, NAME b) { return float(a) > float(b); }                           \
  friend bool operator>=(NAME a, NAME b) { return float(a) >= float(b); }                         \
  friend bool isnan(NAME a) { return float(a) != float(a); }                                      \
  friend bool isinf(NAME a) {                                                                     \
    return float(a) == std::numeric_limits<float>::infinity() ||                                  \
           float(a) == -std::numeric_limits<float>::infinity();                                   \
  }                                                                                               \
  friend bool isfinite(NAME a) { return !isnan(a) && !isinf(a); }

// std::numeric_limits of NAME from the bits of its characteristic values.
#define PHI_SMALL_FLOAT_LIMITS(NAME, DIGITS, DIGITS10, MIN, MAX, EPSILON, INFINITY_, NAN_, DENORM) \
  namespace std {                                                                                  \
  template <>                                                                                      \
  struct numeric_limits<NAME> {                                                                    \
    static constexpr bool is_specialized = true;                                                   \
    static constexpr bool is_signed = true;                                                        \
    static constexpr bool is_integer = false;                                                      \
    static constexpr bool is_exact = false;                                                        \
    static constexpr bool has_infinity = true;                                                     \
    static constexpr bool has_quiet_NaN = true;                                                    \
    static constexpr bool is_iec559 = false;                                                       \
    static constexpr bool is_bounded = true;                                                       \
    static constexpr int digits = DIGITS;                                                          \
    static constexpr int digits10 = DIGITS10;                                                      \
    static constexpr int radix = 2;                                                                \
    static NAME min() { return NAME::from_bits(MIN); }                                             \
    static NAME max() { return NAME::from_bits(MAX); }                                             \
    static NAME lowest() { return NAME::from_bits((MAX) | 0x8000u); }                              \
    static NAME epsilon() { return NAME::from_bits(EPSILON); }                                     \
    static NAME infinity() { return NAME::from_bits(INFINITY_); }                                  \
    static NAME quiet_NaN() { return NAME::from_bits(NAN_); }                                      \
    static NAME denorm_min() { return NAME::from_bits(DENORM); }                                   \
  };                                                                                               \
  }
