// SPDX-License-Identifier: Apache-2.0
#include "numbers.hpp"

#include <tenon/dtypes.h>
#include <tenon/storage_float.hpp>

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>

namespace tenon::validation {
namespace {

template <class T>
std::complex<double> number(T element) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
    return {static_cast<double>(element.real()), static_cast<double>(element.imag())};
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(element);
  else
    return static_cast<double>(static_cast<float>(element));
}

std::string text_of(std::complex<double> value) {
  char text[80];
  if (value.imag() == 0)
    std::snprintf(text, sizeof text, "%.9g", value.real());
  else
    std::snprintf(text, sizeof text, "%.9g%+.9gj", value.real(), value.imag());
  return text;
}

// An element of a dtype that is stored only; of two numbers in a byte their bits.
double stored(int32_t dtype, const unsigned char* at) {
  switch (dtype) {
#define TENON_CASE(id, Type)                                       \
  case TENON_DTYPE_##id: {                                         \
    Type element;                                                  \
    std::memcpy(static_cast<void*>(&element), at, sizeof element); \
    return static_cast<float>(element);                            \
  }
    TENON_SMALL_FLOATS(TENON_CASE)
#undef TENON_CASE
    default:
      return *at;
  }
}

// visit(index, element) until it returns true; the elements may be anywhere in memory.
template <class Visit>
void for_each(int32_t dtype, const std::vector<unsigned char>& elements, Visit&& visit) {
  const DtypeRow& row = kDtypeTable[dtype];
  if (row.type_class == DtypeClass::kStorage) {
    for (size_t at = 0; at < elements.size(); at += row.size)
      if (visit(static_cast<int64_t>(at / row.size), stored(dtype, elements.data() + at))) return;
    return;
  }
  dispatch<bool, uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t,
           Float8E4M3, Float8E5M2, Float16, BFloat16, float, double, std::complex<float>,
           std::complex<double>>(dtype, [&]<class T>() {
    using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    for (size_t at = 0; at < elements.size(); at += sizeof(T)) {
      Stored element;
      std::memcpy(static_cast<void*>(&element), elements.data() + at, sizeof element);
      if (visit(static_cast<int64_t>(at / sizeof(T)), number(element))) return;
    }
  });
}

bool is_finite(std::complex<double> value) {
  return std::isfinite(value.real()) && std::isfinite(value.imag());
}

double relative_tolerance(int32_t dtype) {
  switch (dtype) {
    case TENON_DTYPE_F8E4M3:
    case TENON_DTYPE_F8E5M2:
      return 0.25;
    case TENON_DTYPE_BF16:
      return 2e-2;
    case TENON_DTYPE_F16:
      return 2e-3;
    case TENON_DTYPE_F32:
    case TENON_DTYPE_C64:
      return 1e-4;
    case TENON_DTYPE_F64:
    case TENON_DTYPE_C128:
      return 1e-8;
    default:
      return 0;  // integers are exact
  }
}

bool is_close(std::complex<double> got, std::complex<double> expected, double rtol, double atol) {
  if (got == expected) return true;
  if (!is_finite(got) || !is_finite(expected))  // of two infinities only equal ones are close
    return std::isnan(got.real() + got.imag()) && std::isnan(expected.real() + expected.imag());
  return std::abs(got - expected) <= atol + rtol * std::abs(expected);
}

}  // namespace

std::optional<Element> find_nonfinite(tenon_tensor* tensor) {
  std::optional<Element> found;
  if (tensor->dtype < TENON_DTYPE_F8E4M3) return found;
  for_each(tensor->dtype, elements_of(tensor), [&](int64_t index, std::complex<double> value) {
    if (!is_finite(value)) found = {index, text_of(value)};
    return found.has_value();
  });
  return found;
}

std::optional<Element> find_difference(tenon_tensor* got, tenon_tensor* expected, double rtol,
                                       double atol) {
  if (rtol < 0) rtol = relative_tolerance(got->dtype);
  if (atol < 0) atol = relative_tolerance(got->dtype);
  std::vector<std::complex<double>> right;
  for_each(expected->dtype, elements_of(expected), [&](int64_t, std::complex<double> value) {
    right.push_back(value);
    return false;
  });
  std::optional<Element> found;
  for_each(got->dtype, elements_of(got), [&](int64_t index, std::complex<double> value) {
    const std::complex<double> wanted = right[static_cast<size_t>(index)];
    if (!is_close(value, wanted, rtol, atol))
      found = {index, "expected " + text_of(wanted) + ", got " + text_of(value)};
    return found.has_value();
  });
  return found;
}

}  // namespace tenon::validation
