// SPDX-License-Identifier: Apache-2.0
#include "group/reduce.hpp"

#include <complex>
#include <string>
#include <tenon/error.hpp>
#include <tenon/reduced_float.hpp>
#include <type_traits>

#include "control/record.hpp"

namespace tenon::collectives {
namespace {

template <class T>
struct Wide {
  using Type =
      std::conditional_t<std::is_convertible_v<T, float> && !std::is_arithmetic_v<T>, float, T>;
};

template <class T>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

// Unsigned arithmetic wraps around, as the sum of tensors does.
template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(
        static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return a + b;
  }
}

template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else if constexpr (kIsComplex<T>) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else {
    return a * b;
  }
}

// A NaN stays one.
template <class T>
T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}
template <class T>
T larger(T a, T b) {
  return a > b || a != a ? a : b;
}

constexpr uint64_t kBlock = 1024;  // elements that stay in the first cache

template <class T, class Combine>
void reduce_with(const std::vector<const void*>& parts, void* out, uint64_t count,
                 Combine&& combine, bool is_mean) {
  using W = typename Wide<T>::Type;
  W sum[kBlock];
  for (uint64_t start = 0; start < count; start += kBlock) {
    const uint64_t length = count - start < kBlock ? count - start : kBlock;
    const T* first = static_cast<const T*>(parts[0]) + start;
    for (uint64_t i = 0; i < length; ++i) sum[i] = static_cast<W>(first[i]);
    for (size_t part = 1; part < parts.size(); ++part) {
      const T* next = static_cast<const T*>(parts[part]) + start;
      for (uint64_t i = 0; i < length; ++i) sum[i] = combine(sum[i], static_cast<W>(next[i]));
    }
    if constexpr (!std::is_integral_v<W>)
      if (is_mean) {
        const W divisor = static_cast<W>(static_cast<float>(parts.size()));
        for (uint64_t i = 0; i < length; ++i) {
          if constexpr (kIsComplex<W>)
            sum[i] = W(sum[i].real() / divisor.real(), sum[i].imag() / divisor.real());
          else
            sum[i] /= divisor;
        }
      }
    T* result = static_cast<T*>(out) + start;
    for (uint64_t i = 0; i < length; ++i) result[i] = static_cast<T>(sum[i]);
  }
}

template <class T>
void reduce_as(const std::vector<const void*>& parts, void* out, uint64_t count, int32_t reduce) {
  using W = typename Wide<T>::Type;
  if constexpr (!kIsComplex<W>) {
    if (reduce == TENON_REDUCE_MIN) return reduce_with<T>(parts, out, count, smaller<W>, false);
    if (reduce == TENON_REDUCE_MAX) return reduce_with<T>(parts, out, count, larger<W>, false);
  }
  if (reduce == TENON_REDUCE_PROD) return reduce_with<T>(parts, out, count, multiply<W>, false);
  reduce_with<T>(parts, out, count, add<W>, reduce == TENON_REDUCE_MEAN);
}

using Function = void (*)(const std::vector<const void*>&, void*, uint64_t, int32_t);

// NULL: dtypes that are moved only.
Function function_of(int32_t dtype) {
  switch (dtype) {
    case TENON_DTYPE_U8:
      return reduce_as<uint8_t>;
    case TENON_DTYPE_I8:
      return reduce_as<int8_t>;
    case TENON_DTYPE_U16:
      return reduce_as<uint16_t>;
    case TENON_DTYPE_I16:
      return reduce_as<int16_t>;
    case TENON_DTYPE_U32:
      return reduce_as<uint32_t>;
    case TENON_DTYPE_I32:
      return reduce_as<int32_t>;
    case TENON_DTYPE_U64:
      return reduce_as<uint64_t>;
    case TENON_DTYPE_I64:
      return reduce_as<int64_t>;
    case TENON_DTYPE_F8E4M3:
      return reduce_as<Float8E4M3>;
    case TENON_DTYPE_F8E5M2:
      return reduce_as<Float8E5M2>;
    case TENON_DTYPE_F16:
      return reduce_as<Float16>;
    case TENON_DTYPE_BF16:
      return reduce_as<BFloat16>;
    case TENON_DTYPE_F32:
      return reduce_as<float>;
    case TENON_DTYPE_F64:
      return reduce_as<double>;
    case TENON_DTYPE_C64:
      return reduce_as<std::complex<float>>;
    case TENON_DTYPE_C128:
      return reduce_as<std::complex<double>>;
    default:
      return nullptr;
  }
}

}  // namespace

void check_reduction(int32_t dtype, int32_t reduce) {
  if (reduce < TENON_REDUCE_SUM || reduce > TENON_REDUCE_MEAN)
    throw Error(TENON_INVALID_ARGUMENT,
                "expected a reduction from 0 to 4, got " + std::to_string(reduce));
  const bool is_complex = dtype == TENON_DTYPE_C64 || dtype == TENON_DTYPE_C128;
  const bool is_integer = dtype <= TENON_DTYPE_I64;
  const bool has_order = reduce == TENON_REDUCE_MIN || reduce == TENON_REDUCE_MAX;
  if (function_of(dtype) && !(is_complex && has_order) &&
      !(is_integer && reduce == TENON_REDUCE_MEAN))
    return;
  constexpr const char* kNames[] = {"sum", "product", "minimum", "maximum", "mean"};
  throw Error(TENON_TYPE_MISMATCH, std::string("the ") + kNames[reduce] + " of " +
                                       host->dtype_name(dtype) +
                                       " has no meaning; convert the tensor first");
}

void reduce_parts(const std::vector<const void*>& parts, void* out, uint64_t count, int32_t dtype,
                  int32_t reduce) {
  if (count > 0) function_of(dtype)(parts, out, count, reduce);
}

}  // namespace tenon::collectives
