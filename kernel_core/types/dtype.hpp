// SPDX-License-Identifier: Apache-2.0
// Facts about element types, and the one promotion rule.
#pragma once

#include <tenon/abi.h>

#include <string_view>

namespace tenon::core {

// kStorage: no operator computes with it.
enum class DtypeClass : uint8_t { kBool, kUnsigned, kSigned, kFloating, kComplex, kStorage };

struct DtypeInfo {
  const char* name;
  uint8_t size;  // bytes
  DtypeClass kind;
  tenon_dl_dtype dl;
};

inline constexpr DtypeInfo kDtypes[TENON_DTYPE_COUNT] = {
    {"bool", 1, DtypeClass::kBool, {6, 8, 1}},
    {"uint8", 1, DtypeClass::kUnsigned, {1, 8, 1}},
    {"int8", 1, DtypeClass::kSigned, {0, 8, 1}},
    {"uint16", 2, DtypeClass::kUnsigned, {1, 16, 1}},
    {"int16", 2, DtypeClass::kSigned, {0, 16, 1}},
    {"uint32", 4, DtypeClass::kUnsigned, {1, 32, 1}},
    {"int32", 4, DtypeClass::kSigned, {0, 32, 1}},
    {"uint64", 8, DtypeClass::kUnsigned, {1, 64, 1}},
    {"int64", 8, DtypeClass::kSigned, {0, 64, 1}},
    {"float8_e4m3", 1, DtypeClass::kFloating, {10, 8, 1}},
    {"float8_e5m2", 1, DtypeClass::kFloating, {12, 8, 1}},
    {"float16", 2, DtypeClass::kFloating, {2, 16, 1}},
    {"bfloat16", 2, DtypeClass::kFloating, {4, 16, 1}},
    {"float32", 4, DtypeClass::kFloating, {2, 32, 1}},
    {"float64", 8, DtypeClass::kFloating, {2, 64, 1}},
    {"complex64", 8, DtypeClass::kComplex, {5, 64, 1}},
    {"complex128", 16, DtypeClass::kComplex, {5, 128, 1}},
    {"float8_e4m3fnuz", 1, DtypeClass::kStorage, {11, 8, 1}},
    {"float8_e5m2fnuz", 1, DtypeClass::kStorage, {13, 8, 1}},
    {"float8_e8m0", 1, DtypeClass::kStorage, {14, 8, 1}},
    {"float4_e2m1_x2", 1, DtypeClass::kStorage, {17, 4, 2}},
    {"int4_x2", 1, DtypeClass::kStorage, {0, 4, 2}},
    {"uint4_x2", 1, DtypeClass::kStorage, {1, 4, 2}},
};

constexpr bool is_dtype(int64_t dtype) { return dtype >= 0 && dtype < TENON_DTYPE_COUNT; }
constexpr uint32_t dtype_size(int32_t dtype) { return kDtypes[dtype].size; }
constexpr const char* dtype_name(int64_t dtype) {
  return is_dtype(dtype) ? kDtypes[dtype].name : "invalid";
}
constexpr DtypeClass dtype_class(int32_t dtype) { return kDtypes[dtype].kind; }
constexpr bool is_storage(int32_t dtype) { return dtype_class(dtype) == DtypeClass::kStorage; }

// The dtype that holds values of both: within a class the wider one; across classes the higher
// class (bool < integer < floating < complex) decides and integers never widen a float. Signed with
// unsigned of the same or greater width takes the next wider signed type, and float64 past int64
// (NumPy's rule). float16 with bfloat16, and two different float8, take the smallest type that
// holds both exactly. A storage dtype wins over all others, so that the call is refused by its name.
int32_t promote(int32_t a, int32_t b);

// The dtype of `tensor_dtype` combined with a Python number of class `scalar`: the number is weak
// and changes only the class, never the width.
int32_t promote_weak(int32_t tensor_dtype, DtypeClass scalar);

int32_t find_dtype(std::string_view name);  // -1: unknown

}  // namespace tenon::core
