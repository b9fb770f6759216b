// SPDX-License-Identifier: Apache-2.0
// Element types of C++ for the dtype ids, and the choice between them at run time.
#pragma once

#include "simd/isa.hpp"

#include <tenon/abi.h>

#include <complex>
#include <cstdint>

namespace tenon::cpu {

// Bytes per element, by dtype id.
inline constexpr uint8_t kDtypeSize[TENON_DTYPE_SLOTS] = {1, 1, 1, 2, 2,  4, 4, 8, 8, 1, 1, 2,
                                                          2, 4, 8, 8, 16, 1, 1, 1, 1, 1, 1};

inline bool is_low_precision(int dtype) {
  return dtype >= TENON_DTYPE_F8E4M3 && dtype <= TENON_DTYPE_BF16;
}
inline bool is_complex(int dtype) { return dtype == TENON_DTYPE_C64 || dtype == TENON_DTYPE_C128; }
inline bool is_floating(int dtype) {
  return dtype >= TENON_DTYPE_F8E4M3 && dtype <= TENON_DTYPE_F64;
}

// A type as a value, for generic lambdas: `[&]<class T>(Type<T>) { ... }`.
template <class T>
struct Type {
  using type = T;
};

// Calls f with the C++ type that stores `dtype`. Low precision floats have no such type: the
// function then returns false without a call.
template <class F>
inline bool with_type(int dtype, F&& f) {
  switch (dtype) {
    case TENON_DTYPE_BOOL:
      return f(Type<bool>{}), true;
    case TENON_DTYPE_U8:
      return f(Type<uint8_t>{}), true;
    case TENON_DTYPE_I8:
      return f(Type<int8_t>{}), true;
    case TENON_DTYPE_U16:
      return f(Type<uint16_t>{}), true;
    case TENON_DTYPE_I16:
      return f(Type<int16_t>{}), true;
    case TENON_DTYPE_U32:
      return f(Type<uint32_t>{}), true;
    case TENON_DTYPE_I32:
      return f(Type<int32_t>{}), true;
    case TENON_DTYPE_U64:
      return f(Type<uint64_t>{}), true;
    case TENON_DTYPE_I64:
      return f(Type<int64_t>{}), true;
    case TENON_DTYPE_F32:
      return f(Type<float>{}), true;
    case TENON_DTYPE_F64:
      return f(Type<double>{}), true;
    case TENON_DTYPE_C64:
      return f(Type<std::complex<float>>{}), true;
    case TENON_DTYPE_C128:
      return f(Type<std::complex<double>>{}), true;
    default:
      return false;
  }
}

// Calls f with an unsigned type of the size of an element, for kernels that only copy elements;
// elements of 16 bytes are Bytes16.
struct alignas(8) Bytes16 {
  uint64_t low, high;
};
template <class F>
inline void with_size(int bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(Type<uint8_t>{});
    case 2:
      return f(Type<uint16_t>{});
    case 4:
      return f(Type<uint32_t>{});
    case 8:
      return f(Type<uint64_t>{});
    default:
      return f(Type<Bytes16>{});
  }
}

}  // namespace tenon::cpu
