// SPDX-License-Identifier: Apache-2.0
// The list of kernel definitions that each file of kernels returns.
#pragma once

#include "simd/isa.hpp"

#include <tenon/abi.h>

#include <cstddef>

namespace tenon::cpu {

struct KernelList {
  const tenon_kernel_def* first = nullptr;
  size_t count = 0;

  KernelList() = default;
  template <size_t N>
  constexpr KernelList(const tenon_kernel_def (&kernels)[N]) : first(kernels), count(N) {}
  const tenon_kernel_def* begin() const { return first; }
  const tenon_kernel_def* end() const { return first + count; }
};

// Bits for the dtype_mask of a kernel.
inline constexpr uint64_t dtype_bit(int dtype) { return uint64_t{1} << dtype; }
inline constexpr uint64_t kAllDtypes = (uint64_t{1} << TENON_DTYPE_COUNT) - 1;
inline constexpr uint64_t kLowPrecision = dtype_bit(TENON_DTYPE_F8E4M3) |
                                          dtype_bit(TENON_DTYPE_F8E5M2) |
                                          dtype_bit(TENON_DTYPE_F16) | dtype_bit(TENON_DTYPE_BF16);
inline constexpr uint64_t kFloats =
    kLowPrecision | dtype_bit(TENON_DTYPE_F32) | dtype_bit(TENON_DTYPE_F64);
inline constexpr uint64_t kComplexes = dtype_bit(TENON_DTYPE_C64) | dtype_bit(TENON_DTYPE_C128);
inline constexpr uint64_t kIntegers = dtype_bit(TENON_DTYPE_F8E4M3) - dtype_bit(TENON_DTYPE_U8);
inline constexpr uint64_t kBool = dtype_bit(TENON_DTYPE_BOOL);
inline constexpr uint64_t kReals = kIntegers | kFloats;

}  // namespace tenon::cpu
