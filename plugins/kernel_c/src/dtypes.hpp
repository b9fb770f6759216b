// SPDX-License-Identifier: Apache-2.0
// The dtypes of Kernel C.
#pragma once

#include <tenon/abi.h>

#include <string>

namespace tenon::kernel_c {

struct DtypeText {
  const char* suffix;   // in the names of programs: "f16"
  const char* storage;  // in memory: "tk_u16"
  const char* compute;  // in arithmetic: "tk_f32"; NULL: none
  const char* load;     // function from storage to compute; "" where they are one
  const char* store;
  const char* traits;  // what kernels/functions.c asks about T
  uint32_t bytes;
};
const DtypeText& dtype_text(int dtype);

constexpr uint64_t dtype_bit(int dtype) { return uint64_t{1} << dtype; }
inline constexpr uint64_t kBool = dtype_bit(TENON_DTYPE_BOOL);
inline constexpr uint64_t kIntegers = 0x1fe;
inline constexpr uint64_t kFloats = dtype_bit(TENON_DTYPE_F16) | dtype_bit(TENON_DTYPE_BF16) |
                                    dtype_bit(TENON_DTYPE_F32) | dtype_bit(TENON_DTYPE_F64);
inline constexpr uint64_t kNumbers = kIntegers | kFloats;
inline constexpr uint64_t kComplex = dtype_bit(TENON_DTYPE_C64) | dtype_bit(TENON_DTYPE_C128);
inline constexpr uint64_t kAllDtypes = (uint64_t{1} << TENON_DTYPE_COUNT) - 1;

inline bool is_integer(int dtype) { return kIntegers >> dtype & 1; }
inline bool is_floating(int dtype) { return kFloats >> dtype & 1; }
inline bool is_complex(int dtype) { return kComplex >> dtype & 1; }
// Of the parts of a complex dtype; of others the dtype.
inline int real_dtype(int dtype) {
  return dtype == TENON_DTYPE_C64    ? TENON_DTYPE_F32
         : dtype == TENON_DTYPE_C128 ? TENON_DTYPE_F64
                                     : dtype;
}

// The text of `value`, of the type in which one dtype computes, as the C of another one: a real
// number as a complex one, a complex one as its real part, or whether it is not 0.
std::string converted(int from, int to, const std::string& value);

// An unsigned type as wide as the dtype, for kernels that only move elements; wider than 8 bytes: a
// struct of kernels/move.c.
const char* bits_type(int dtype);

}  // namespace tenon::kernel_c
