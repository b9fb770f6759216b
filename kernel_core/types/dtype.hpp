// SPDX-License-Identifier: Apache-2.0
// Facts about element types, and the one promotion rule.
#pragma once

#include <tenon/dtypes.h>

#include <string_view>

namespace tenon::core {

using tenon::DtypeClass;

// What calls look up: 16 bytes a dtype, where the whole row has 48.
struct DtypeInfo {
  const char* name;
  uint8_t size;  // bytes
  DtypeClass kind;
  tenon_dl_dtype dl;
};

#define TENON_DTYPE_INFO(id, name, suffix, type_class, size, code, bits, lanes, ...) \
  {name, size, DtypeClass::k##type_class, {TENON_DL_##code, bits, lanes}},
inline constexpr DtypeInfo kDtypes[TENON_DTYPE_COUNT] = {TENON_DTYPES(TENON_DTYPE_INFO)};
#undef TENON_DTYPE_INFO

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
