// SPDX-License-Identifier: Apache-2.0
// PD_DISPATCH_..._TYPES(dtype, "name", ([&] { ... data_t ... })): run a block with `data_t` as the
// C++ type of `dtype`. A dtype outside the macro's set throws a text with the name and the dtype.
#pragma once

#include <paddle/common/exception.h>
#include <paddle/phi/common/data_type.h>

namespace paddle {
namespace detail {
[[noreturn]] PADDLE_API void throw_dispatch(const char* file, int line, const char* name,
                                            DataType dtype, const char* expected);
}
}  // namespace paddle

#define PD_DISPATCH_CASE_(ENUM, ...)                                       \
  case ::paddle::DataType::ENUM: {                                         \
    using data_t [[maybe_unused]] =                                        \
        typename ::phi::DataTypeToCppType<::paddle::DataType::ENUM>::type; \
    __VA_ARGS__();                                                         \
    break;                                                                 \
  }
#define PD_DISPATCH_CASES_FLOATING_(...) \
  PD_DISPATCH_CASE_(FLOAT32, __VA_ARGS__) PD_DISPATCH_CASE_(FLOAT64, __VA_ARGS__)
#define PD_DISPATCH_CASES_INTEGRAL_(...) \
  PD_DISPATCH_CASE_(UINT8, __VA_ARGS__)  \
  PD_DISPATCH_CASE_(INT8, __VA_ARGS__)   \
  PD_DISPATCH_CASE_(INT16, __VA_ARGS__)  \
  PD_DISPATCH_CASE_(INT32, __VA_ARGS__) PD_DISPATCH_CASE_(INT64, __VA_ARGS__)
#define PD_DISPATCH_CASES_COMPLEX_(...) \
  PD_DISPATCH_CASE_(COMPLEX64, __VA_ARGS__) PD_DISPATCH_CASE_(COMPLEX128, __VA_ARGS__)

#define PD_DISPATCH_SWITCH_(TYPE, NAME, EXPECTED, CASES)                                          \
  [&] {                                                                                           \
    const ::paddle::DataType pd_dispatch_dtype_ = (TYPE);                                         \
    switch (pd_dispatch_dtype_) {                                                                 \
      CASES                                                                                       \
      default:                                                                                    \
        ::paddle::detail::throw_dispatch(__FILE__, __LINE__, NAME, pd_dispatch_dtype_, EXPECTED); \
    }                                                                                             \
  }()

#define PD_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  PD_DISPATCH_SWITCH_(TYPE, NAME, "float32 or float64", PD_DISPATCH_CASES_FLOATING_(__VA_ARGS__))

#define PD_DISPATCH_FLOATING_AND_HALF_TYPES(TYPE, NAME, ...)     \
  PD_DISPATCH_SWITCH_(TYPE, NAME, "float16, float32 or float64", \
                      PD_DISPATCH_CASES_FLOATING_(__VA_ARGS__)   \
                          PD_DISPATCH_CASE_(FLOAT16, __VA_ARGS__))

#define PD_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...)                     \
  PD_DISPATCH_SWITCH_(TYPE, NAME, "uint8, int8, int16, int32 or int64", \
                      PD_DISPATCH_CASES_INTEGRAL_(__VA_ARGS__))

#define PD_DISPATCH_COMPLEX_TYPES(TYPE, NAME, ...)           \
  PD_DISPATCH_SWITCH_(TYPE, NAME, "complex64 or complex128", \
                      PD_DISPATCH_CASES_COMPLEX_(__VA_ARGS__))

#define PD_DISPATCH_FLOATING_AND_INTEGRAL_TYPES(TYPE, NAME, ...)                       \
  PD_DISPATCH_SWITCH_(TYPE, NAME, "float32, float64 or an integer type up to 64 bits", \
                      PD_DISPATCH_CASES_FLOATING_(__VA_ARGS__)                         \
                          PD_DISPATCH_CASES_INTEGRAL_(__VA_ARGS__))

#define PD_DISPATCH_FLOATING_AND_COMPLEX_TYPES(TYPE, NAME, ...)                \
  PD_DISPATCH_SWITCH_(TYPE, NAME, "float32, float64, complex64 or complex128", \
                      PD_DISPATCH_CASES_FLOATING_(__VA_ARGS__)                 \
                          PD_DISPATCH_CASES_COMPLEX_(__VA_ARGS__))

// With further types, given as paddle::DataType constants.
#define PD_DISPATCH_FLOATING_AND_COMPLEX_AND_1_TYPE(FIRST, TYPE, NAME, ...)                   \
  PD_DISPATCH_SWITCH_(TYPE, NAME, "float32, float64, complex64, complex128 or one type more", \
                      PD_DISPATCH_CASES_FLOATING_(__VA_ARGS__)                                \
                          PD_DISPATCH_CASES_COMPLEX_(__VA_ARGS__)                             \
                              PD_DISPATCH_CASE_OF_(FIRST, __VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_COMPLEX_AND_2_TYPES(FIRST, SECOND, TYPE, NAME, ...)   \
  PD_DISPATCH_SWITCH_(                                                                 \
      TYPE, NAME, "float32, float64, complex64, complex128 or two types more",         \
      PD_DISPATCH_CASES_FLOATING_(__VA_ARGS__) PD_DISPATCH_CASES_COMPLEX_(__VA_ARGS__) \
          PD_DISPATCH_CASE_OF_(FIRST, __VA_ARGS__) PD_DISPATCH_CASE_OF_(SECOND, __VA_ARGS__))
#define PD_DISPATCH_CASE_OF_(DTYPE, ...)                                            \
  case DTYPE: {                                                                     \
    using data_t [[maybe_unused]] = typename ::phi::DataTypeToCppType<DTYPE>::type; \
    __VA_ARGS__();                                                                  \
    break;                                                                          \
  }

#define PD_DISPATCH_FLOATING_AND_INTEGRAL_AND_COMPLEX_TYPES(TYPE, NAME, ...)             \
  PD_DISPATCH_SWITCH_(TYPE, NAME, "a floating, integer (up to 64 bits) or complex type", \
                      PD_DISPATCH_CASES_FLOATING_(__VA_ARGS__)                           \
                          PD_DISPATCH_CASES_INTEGRAL_(__VA_ARGS__)                       \
                              PD_DISPATCH_CASES_COMPLEX_(__VA_ARGS__))
