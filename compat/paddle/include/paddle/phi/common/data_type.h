// SPDX-License-Identifier: Apache-2.0
// paddle::DataType: the element type of a tensor, and what C++ type stands for it.
#pragma once

#include <paddle/common/export.h>
#include <paddle/phi/common/bfloat16.h>
#include <paddle/phi/common/complex.h>
#include <paddle/phi/common/float16.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

namespace phi {
namespace dtype {

// Storage only: nothing computes in eight bits here.
struct float8_e4m3fn {
  uint8_t x;
};
struct float8_e5m2 {
  uint8_t x;
};

}  // namespace dtype

// The numbers are those of compiled code and differ from C_DataType's.
enum class DataType {
  UNDEFINED = 0,
  BOOL = 1,
  UINT8 = 2,
  INT8 = 3,
  UINT16 = 4,
  INT16 = 5,
  UINT32 = 6,
  INT32 = 7,
  UINT64 = 8,
  INT64 = 9,
  FLOAT32 = 10,
  FLOAT64 = 11,
  COMPLEX64 = 12,
  COMPLEX128 = 13,
  PSTRING = 14,  // no tensor holds it
  FLOAT16 = 15,
  BFLOAT16 = 16,
  FLOAT8_E4M3FN = 17,
  FLOAT8_E5M2 = 18,
  NUM_DATA_TYPES = 19,
  ALL_DTYPE = UNDEFINED,
};

// "float32"; "undefined" for what is none.
PADDLE_API const char* DataTypeToString(DataType dtype);
inline std::ostream& operator<<(std::ostream& out, DataType dtype) {
  return out << DataTypeToString(dtype);
}
// Bytes of one element; throws for UNDEFINED and PSTRING.
PADDLE_API size_t SizeOf(DataType dtype);

// Every element type once: X(C++ type, name in DataType).
#define PD_FOR_EACH_DATA_TYPE(X)                \
  X(bool, BOOL)                                 \
  X(uint8_t, UINT8)                             \
  X(int8_t, INT8)                               \
  X(uint16_t, UINT16)                           \
  X(int16_t, INT16)                             \
  X(uint32_t, UINT32)                           \
  X(int32_t, INT32)                             \
  X(uint64_t, UINT64)                           \
  X(int64_t, INT64)                             \
  X(float, FLOAT32)                             \
  X(double, FLOAT64)                            \
  X(::phi::dtype::float16, FLOAT16)             \
  X(::phi::dtype::bfloat16, BFLOAT16)           \
  X(::phi::dtype::complex<float>, COMPLEX64)    \
  X(::phi::dtype::complex<double>, COMPLEX128)  \
  X(::phi::dtype::float8_e4m3fn, FLOAT8_E4M3FN) \
  X(::phi::dtype::float8_e5m2, FLOAT8_E5M2)

// No definition: a type that no tensor holds does not compile.
template <typename T>
struct CppTypeToDataType;
template <DataType>
struct DataTypeToCppType;
#define PD_DATA_TYPE_TRAIT(CPP_TYPE, NAME)                      \
  template <>                                                   \
  struct CppTypeToDataType<CPP_TYPE> {                          \
    static constexpr DataType Type() { return DataType::NAME; } \
  };                                                            \
  template <>                                                   \
  struct DataTypeToCppType<DataType::NAME> {                    \
    using type = CPP_TYPE;                                      \
  };
PD_FOR_EACH_DATA_TYPE(PD_DATA_TYPE_TRAIT)
#undef PD_DATA_TYPE_TRAIT

// The second type of 64 bits is the same to a tensor.
template <>
struct CppTypeToDataType<long long> {  // NOLINT
  static constexpr DataType Type() { return DataType::INT64; }
};
template <>
struct CppTypeToDataType<unsigned long long> {  // NOLINT
  static constexpr DataType Type() { return DataType::UINT64; }
};

}  // namespace phi

namespace paddle {

using DataType = phi::DataType;
using phi::DataTypeToString;
using float16 = phi::dtype::float16;
using bfloat16 = phi::dtype::bfloat16;
using complex64 = phi::dtype::complex<float>;
using complex128 = phi::dtype::complex<double>;

namespace experimental {
using DataType = phi::DataType;
using float16 = phi::dtype::float16;
using bfloat16 = phi::dtype::bfloat16;
using complex64 = phi::dtype::complex<float>;
using complex128 = phi::dtype::complex<double>;
}  // namespace experimental

}  // namespace paddle
