// SPDX-License-Identifier: Apache-2.0
// 16-bit floating types: they are stored, and computed with in float32.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace simulated {

struct Float16 {
  uint16_t bits;
  operator float() const {
    const uint32_t sign = (bits & 0x8000u) << 16, size = bits & 0x7fffu;
    if (size >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (size & 0x3ffu) << 13);
    if (size < 0x400u)
      return std::bit_cast<float>(sign |
                                  std::bit_cast<uint32_t>(static_cast<float>(size) * 0x1p-24f));
    return std::bit_cast<float>(sign | ((size << 13) + 0x38000000u));
  }
  static Float16 from(float x) {  // to nearest even
    const auto whole = std::bit_cast<uint32_t>(x);
    const uint32_t sign = whole >> 16 & 0x8000u, size = whole & 0x7fffffffu;
    uint32_t result;
    if (size > 0x7f800000u)
      result = 0x7e00u;
    else if (size >= 0x477ff000u)
      result = 0x7c00u;
    else if (size < 0x38800000u)
      result = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
    else
      result = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
    return {static_cast<uint16_t>(sign | result)};
  }
};

struct Bfloat16 {
  uint16_t bits;
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static Bfloat16 from(float x) {
    const auto whole = std::bit_cast<uint32_t>(x);
    if (x != x) return {static_cast<uint16_t>(whole >> 16 | 0x40u)};
    return {static_cast<uint16_t>((whole + 0x7fffu + (whole >> 16 & 1u)) >> 16)};
  }
};

template <class T>
constexpr bool kIsStored = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

template <class T, class C>
T from_computed(C x) {
  if constexpr (kIsStored<T>)
    return T::from(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

}  // namespace simulated
