// SPDX-License-Identifier: Apache-2.0
// phi::dtype::bfloat16: the upper half of a float32, computed in float32, rounded to nearest even.
#pragma once

#include <paddle/phi/common/small_float.h>

namespace phi {
namespace dtype {

struct alignas(2) bfloat16 {
  PHI_SMALL_FLOAT_MEMBERS(bfloat16)

  static uint16_t encode(float value) {
    const uint32_t bits = detail::float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
      return static_cast<uint16_t>((bits >> 16) | 0x40u);  // NaN
    return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
  static float decode(uint16_t half) {
    return detail::bits_float(static_cast<uint32_t>(half) << 16);
  }
};
static_assert(sizeof(bfloat16) == 2 && std::is_trivial<bfloat16>::value,
              "arrays of it are raw memory");

}  // namespace dtype
}  // namespace phi

PHI_SMALL_FLOAT_LIMITS(phi::dtype::bfloat16, 8, 2, 0x0080, 0x7f7f, 0x3c00, 0x7f80, 0x7fc0, 0x0001)
