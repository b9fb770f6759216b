// SPDX-License-Identifier: Apache-2.0
// float32 to the narrow formats, rounding to nearest even. For single scalars: kernels have their own.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tenon::core {

inline uint16_t float_to_bfloat16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// A binary format with `exponent_bits` and `mantissa_bits`. `has_infinity` false: E4M3FN, where the
// top exponent holds numbers, only all ones is NaN, and what is too large becomes NaN.
inline uint32_t float_to_small(float value, int exponent_bits, int mantissa_bits, bool has_infinity) {
  uint32_t sign = std::signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0;
  int bias = (1 << (exponent_bits - 1)) - 1;
  uint32_t top = (1u << exponent_bits) - 1;
  uint32_t infinity = has_infinity ? top << mantissa_bits : (top << mantissa_bits | ((1u << mantissa_bits) - 1));
  uint32_t nan = has_infinity ? infinity | 1u << (mantissa_bits - 1) : infinity;
  if (std::isnan(value)) return sign | nan;
  double magnitude = std::fabs(static_cast<double>(value));
  if (std::isinf(value)) return sign | infinity;
  if (magnitude == 0) return sign;
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  // Exact in double: every float32 scaled by a power of two. nearbyint rounds ties to even.
  double units = std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent));
  uint32_t code = static_cast<uint32_t>(exponent + bias - 1) * (1u << mantissa_bits) +
                  static_cast<uint32_t>(units);
  return sign | (code >= infinity ? infinity : code);
}

inline uint16_t float_to_float16(float value) {
  return static_cast<uint16_t>(float_to_small(value, 5, 10, true));
}
inline uint8_t float_to_float8_e5m2(float value) {
  return static_cast<uint8_t>(float_to_small(value, 5, 2, true));
}
inline uint8_t float_to_float8_e4m3(float value) {
  return static_cast<uint8_t>(float_to_small(value, 4, 3, false));
}

}  // namespace tenon::core
