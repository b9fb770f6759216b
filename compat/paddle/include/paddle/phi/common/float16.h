// SPDX-License-Identifier: Apache-2.0
// phi::dtype::float16: IEEE 754 binary16, computed in float32, rounded to nearest even.
#pragma once

#include <paddle/phi/common/small_float.h>

namespace phi {
namespace dtype {

struct alignas(2) float16 {
  PHI_SMALL_FLOAT_MEMBERS(float16)

  static uint16_t encode(float value) {
    const uint32_t bits = detail::float_bits(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);  // NaN
    if (magnitude >= 0x477ff000u)
      return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
    if (magnitude < 0x38800000u) {
      // Below the normals: adding 0.5 leaves the rounded multiple of 2^-24 in the last bits.
      const float shifted = detail::bits_float(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (detail::float_bits(shifted) - 0x3f000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
  }
  static float decode(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u)
      return detail::bits_float(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    if (magnitude >= 0x400u) return detail::bits_float(sign | ((magnitude << 13) + 0x38000000u));
    const float small = static_cast<float>(magnitude) * 5.9604644775390625e-8f;  // 2^-24
    return sign ? -small : small;
  }
};
static_assert(sizeof(float16) == 2 && std::is_trivial<float16>::value,
              "arrays of it are raw memory");

}  // namespace dtype
}  // namespace phi

PHI_SMALL_FLOAT_LIMITS(phi::dtype::float16, 11, 3, 0x0400, 0x7bff, 0x1400, 0x7c00, 0x7e00, 0x0001)
