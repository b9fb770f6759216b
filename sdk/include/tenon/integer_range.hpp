// SPDX-License-Identifier: Apache-2.0
// Which whole numbers an integer dtype holds. Numbers of a program that do not fit are errors
// rather than wrapped.
#pragma once

#include <tenon/abi.h>

#include <cstdint>
#include <string>

namespace tenon {

// True for dtypes that are not integers: bool asks for zero or not, floats round.
constexpr bool holds_integer(int32_t dtype, int64_t value) {
  switch (dtype) {
    case TENON_DTYPE_U8:
      return value >= 0 && value <= UINT8_MAX;
    case TENON_DTYPE_I8:
      return value >= INT8_MIN && value <= INT8_MAX;
    case TENON_DTYPE_U16:
      return value >= 0 && value <= UINT16_MAX;
    case TENON_DTYPE_I16:
      return value >= INT16_MIN && value <= INT16_MAX;
    case TENON_DTYPE_U32:
      return value >= 0 && value <= int64_t{UINT32_MAX};
    case TENON_DTYPE_I32:
      return value >= INT32_MIN && value <= INT32_MAX;
    case TENON_DTYPE_U64:
      return value >= 0;
    default:
      return true;
  }
}

inline bool holds_number(int32_t dtype, const tenon_value& value) {
  return value.tag != TENON_VALUE_INT || holds_integer(dtype, value.v.i);
}

constexpr bool is_integer_dtype(int32_t dtype) {
  return dtype >= TENON_DTYPE_U8 && dtype <= TENON_DTYPE_I64;
}

// "expected a value in [0, 255] for uint8, got 300; convert the tensor to a dtype that holds it"
inline std::string out_of_integer_range(int32_t dtype, const char* name, int64_t got) {
  constexpr int kBits[] = {8, 8, 16, 16, 32, 32, 64, 64};  // in the order of the dtypes
  const int bits = kBits[dtype - TENON_DTYPE_U8];
  const bool is_signed = (dtype - TENON_DTYPE_U8) % 2 == 1;
  const uint64_t high = ~uint64_t{0} >> (64 - bits + (is_signed ? 1 : 0));
  return "expected a value in [" + (is_signed ? "-" + std::to_string(high + 1) : "0") + ", " +
         std::to_string(high) + "] for " + name + ", got " + std::to_string(got) +
         "; convert the tensor to a dtype that holds it";
}

}  // namespace tenon
