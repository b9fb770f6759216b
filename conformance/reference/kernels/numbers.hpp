// SPDX-License-Identifier: Apache-2.0
// Element types: the two halves as C++ types, and a switch from a dtype to its type.
#pragma once

#include <tenon/abi.h>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace reference {

// IEEE half. Through float, rounding to nearest, ties to even.
struct Half {
  uint16_t bits;
  Half() = default;
  explicit Half(float value) {
    const uint32_t wide = std::bit_cast<uint32_t>(value), sign = wide >> 16 & 0x8000;
    const uint32_t size = wide & 0x7fffffff;
    if (size > 0x7f800000) {  // NaN
      bits = static_cast<uint16_t>(sign | 0x7e00);
    } else if (size >= 0x477ff000) {  // rounds past the largest
      bits = static_cast<uint16_t>(sign | 0x7c00);
    } else if (size < 0x38800000) {  // subnormal: adding 0.5 shifts and rounds as the hardware does
      const uint32_t shifted = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5f);
      bits = static_cast<uint16_t>(sign | (shifted - 0x3f000000));
    } else {
      bits = static_cast<uint16_t>(sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
    }
  }
  operator float() const {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16, size = bits & 0x7fffu;
    if (size >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (size & 0x3ff) << 13);
    const float value = static_cast<float>(size & 0x3ff) * 0x1p-24f;  // subnormal
    if (size < 0x400) return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
    return std::bit_cast<float>(sign | ((size << 13) + 0x38000000));
  }
};

struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const uint32_t wide = std::bit_cast<uint32_t>(value);
    bits = value != value ? uint16_t{0x7fc0}
                          : static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_floating = is_half<T> || std::is_floating_point_v<T>;

// What a value is computed in, and what many are added up in.
template <class T>
using Compute = std::conditional_t<is_half<T>, float, T>;
template <class T>
using Sum = std::conditional_t<is_floating<T>, double, uint64_t>;  // integers wrap

template <class T>
struct Type {
  using type = T;
};

constexpr uint64_t mask(int dtype) { return uint64_t{1} << dtype; }
inline constexpr uint64_t kFloats =
    mask(TENON_DTYPE_F16) | mask(TENON_DTYPE_BF16) | mask(TENON_DTYPE_F32) | mask(TENON_DTYPE_F64);
inline constexpr uint64_t kIntegers =
    mask(TENON_DTYPE_U8) | mask(TENON_DTYPE_I8) | mask(TENON_DTYPE_U16) | mask(TENON_DTYPE_I16) |
    mask(TENON_DTYPE_U32) | mask(TENON_DTYPE_I32) | mask(TENON_DTYPE_U64) | mask(TENON_DTYPE_I64);
inline constexpr uint64_t kReal = kFloats | kIntegers | mask(TENON_DTYPE_BOOL);

// f(Type<T>()) for a dtype of kReal; false for any other.
template <class F>
bool with_type(int32_t dtype, F&& f) {
  switch (dtype) {
    case TENON_DTYPE_BOOL:
      return f(Type<bool>()), true;
    case TENON_DTYPE_U8:
      return f(Type<uint8_t>()), true;
    case TENON_DTYPE_I8:
      return f(Type<int8_t>()), true;
    case TENON_DTYPE_U16:
      return f(Type<uint16_t>()), true;
    case TENON_DTYPE_I16:
      return f(Type<int16_t>()), true;
    case TENON_DTYPE_U32:
      return f(Type<uint32_t>()), true;
    case TENON_DTYPE_I32:
      return f(Type<int32_t>()), true;
    case TENON_DTYPE_U64:
      return f(Type<uint64_t>()), true;
    case TENON_DTYPE_I64:
      return f(Type<int64_t>()), true;
    case TENON_DTYPE_F16:
      return f(Type<Half>()), true;
    case TENON_DTYPE_BF16:
      return f(Type<BFloat16>()), true;
    case TENON_DTYPE_F32:
      return f(Type<float>()), true;
    case TENON_DTYPE_F64:
      return f(Type<double>()), true;
  }
  return false;
}

}  // namespace reference
