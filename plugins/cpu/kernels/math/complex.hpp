// SPDX-License-Identifier: Apache-2.0
// The functions that make sense for complex numbers.
#pragma once

#include "simd/isa.hpp"

#include <cmath>
#include <complex>

namespace tenon::cpu::TENON_CPU_ISA::math {

template <class T>
using Complex = std::complex<T>;

#define TENON_COMPLEX_UNARY(NAME)        \
  template <class T>                     \
  inline Complex<T> NAME(Complex<T> x) { \
    return std::NAME(x);                 \
  }
TENON_COMPLEX_UNARY(exp)
TENON_COMPLEX_UNARY(log)
TENON_COMPLEX_UNARY(log10)
TENON_COMPLEX_UNARY(sqrt)
TENON_COMPLEX_UNARY(sin)
TENON_COMPLEX_UNARY(cos)
TENON_COMPLEX_UNARY(tan)
TENON_COMPLEX_UNARY(asin)
TENON_COMPLEX_UNARY(acos)
TENON_COMPLEX_UNARY(atan)
TENON_COMPLEX_UNARY(sinh)
TENON_COMPLEX_UNARY(cosh)
TENON_COMPLEX_UNARY(asinh)
TENON_COMPLEX_UNARY(acosh)
TENON_COMPLEX_UNARY(atanh)
#undef TENON_COMPLEX_UNARY

// At infinity the imaginary part is a zero of the sign of y, as the array API standard has it; C's
// has that of sin(2y).
template <class T>
inline Complex<T> tanh(Complex<T> x) {
  if (std::isinf(x.real()) && std::isfinite(x.imag()))
    return {std::copysign(T(1), x.real()), std::copysign(T(0), x.imag())};
  return std::tanh(x);
}
template <class T>
inline T abs(Complex<T> x) {
  return std::abs(x);
}
template <class T>
inline Complex<T> conj(Complex<T> x) {
  return {x.real(), -x.imag()};
}
template <class T>
inline Complex<T> round(Complex<T> x) {
  return {std::nearbyint(x.real()), std::nearbyint(x.imag())};
}
template <class T>
inline T real(Complex<T> x) {
  return x.real();
}
template <class T>
inline T imag(Complex<T> x) {
  return x.imag();
}
template <class T>
inline Complex<T> exp2(Complex<T> x) {
  return std::exp(x * static_cast<T>(0.6931471805599453));
}
template <class T>
inline Complex<T> log2(Complex<T> x) {
  return std::log(x) * static_cast<T>(1.4426950408889634);
}
// exp(a + ib) - 1 = expm1(a) cos(b) - 2 sin(b/2)^2 + i exp(a) sin(b). Where a part is infinite or
// NaN, nothing cancels, and exp knows what C's Annex G asks for.
template <class T>
inline Complex<T> expm1(Complex<T> x) {
  if (x.imag() == 0) return {x.real() == 0 ? T(0) : std::expm1(x.real()), x.imag()};
  if (!std::isfinite(x.real()) || !std::isfinite(x.imag())) return std::exp(x) - T(1);
  const T half = std::sin(x.imag() / 2);
  return {std::expm1(x.real()) * std::cos(x.imag()) - 2 * half * half,
          std::exp(x.real()) * std::sin(x.imag())};
}
// log|1 + z| = log1p(a (2 + a) + b^2) / 2
template <class T>
inline Complex<T> log1p(Complex<T> x) {
  const T a = x.real(), b = x.imag();
  const T modulus = std::abs(a) < T(0.5) && std::abs(b) < T(0.5)
                        ? std::log1p(a * (2 + a) + b * b) / 2
                        : std::log(std::hypot(1 + a, b));
  return {modulus, std::atan2(b, 1 + a)};
}
template <class T>
inline Complex<T> rsqrt(Complex<T> x) {
  return T(1) / std::sqrt(x);
}
template <class T>
inline Complex<T> sigmoid(
    Complex<T> x) {  // of the two forms the one whose exponential does not overflow
  if (x.real() < 0) {
    const Complex<T> power = std::exp(x);
    return power / (T(1) + power);
  }
  return T(1) / (T(1) + std::exp(-x));
}
template <class T>
inline Complex<T> pow(Complex<T> x, Complex<T> y) {
  if (y == Complex<T>(0)) return T(1);
  if (x == Complex<T>(0)) return y.real() > 0 ? T(0) : std::numeric_limits<T>::quiet_NaN();
  return std::pow(x, y);
}
// The direction of an infinite part is known unless both are infinite.
template <class T>
inline Complex<T> sign(Complex<T> x) {
  const bool is_real = std::isinf(x.real());
  if (is_real != std::isinf(x.imag()))
    return is_real ? Complex<T>(std::copysign(T(1), x.real()), 0)
                   : Complex<T>(0, std::copysign(T(1), x.imag()));
  using Limits = std::numeric_limits<T>;
  T modulus = std::abs(x);
  if (modulus == 0) return 0;
  if (std::isinf(modulus) ||
      modulus < Limits::min()) {  // it overflows, or is rounded to few digits
    x *= std::isinf(modulus) ? T(0.5) : 2 / Limits::epsilon();
    modulus = std::abs(x);
  }
  return x / modulus;
}
template <class T>
inline bool isnan(Complex<T> x) {
  return std::isnan(x.real()) | std::isnan(x.imag());
}
template <class T>
inline bool isinf(Complex<T> x) {
  return std::isinf(x.real()) | std::isinf(x.imag());
}
template <class T>
inline bool isfinite(Complex<T> x) {
  return std::isfinite(x.real()) & std::isfinite(x.imag());
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
