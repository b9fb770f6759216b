// SPDX-License-Identifier: Apache-2.0
// The four dtypes of elements that the vendors' libraries compute in: float32, float64 and their complex ones.
#pragma once

#include <tenon/abi.h>

namespace gpu {

inline bool is_complex(int dtype) { return dtype == TENON_DTYPE_C64 || dtype == TENON_DTYPE_C128; }
inline bool is_double(int dtype) { return dtype == TENON_DTYPE_F64 || dtype == TENON_DTYPE_C128; }
inline int real_of(int dtype) { return is_double(dtype) ? TENON_DTYPE_F64 : TENON_DTYPE_F32; }
inline int complex_of(int dtype) { return is_double(dtype) ? TENON_DTYPE_C128 : TENON_DTYPE_C64; }

// 0 or 1 as an element of the dtype, on the host.
inline const void* number_of(int dtype, int number) {
  static constexpr float k32[][2] = {{0, 0}, {1, 0}};
  static constexpr double k64[][2] = {{0, 0}, {1, 0}};
  return is_double(dtype) ? static_cast<const void*>(k64[number]) : k32[number];
}

}  // namespace gpu
