// SPDX-License-Identifier: Apache-2.0
// The dtypes of two numbers in a byte, and what their numbers fit.
#pragma once

#include <tenon/dtypes.h>
#include <tenon/ops/shapes.hpp>

namespace tenon::standard_ops {

constexpr bool is_packed(int32_t dtype) { return kDtypeTable[dtype].dl.lanes > 1; }
// What is stored only: no arithmetic.
constexpr bool is_storage(int32_t dtype) {
  return kDtypeTable[dtype].type_class == DtypeClass::kStorage;
}

// The smallest that NumPy has.
constexpr int32_t unpacked_dtype(int32_t packed) {
  return packed == TENON_DTYPE_F4E2M1X2 ? TENON_DTYPE_F32
         : packed == TENON_DTYPE_I4X2   ? TENON_DTYPE_I8
                                        : TENON_DTYPE_U8;
}

// The dtypes that hold every number of a packed one.
constexpr uint64_t dtypes_of_unpacked(int32_t packed) {
  constexpr uint64_t kSigned = shapes::bit(TENON_DTYPE_I8) | shapes::bit(TENON_DTYPE_I16) |
                               shapes::bit(TENON_DTYPE_I32) | shapes::bit(TENON_DTYPE_I64);
  if (packed == TENON_DTYPE_F4E2M1X2) return shapes::kFloats;
  if (packed == TENON_DTYPE_I4X2) return shapes::kFloats | kSigned;
  // 9 has four bits, and float8_e5m2 three.
  return shapes::kIntegers | (shapes::kFloats & ~shapes::bit(TENON_DTYPE_F8E5M2));
}

}  // namespace tenon::standard_ops
