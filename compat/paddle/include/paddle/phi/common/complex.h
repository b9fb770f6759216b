// SPDX-License-Identifier: Apache-2.0
// phi::dtype::complex<T>: two numbers, aligned as one, interchangeable with std::complex<T>.
#pragma once

#include <paddle/common/hostdevice.h>

#include <cmath>
#include <complex>
#include <ostream>
#include <type_traits>

namespace phi {
namespace dtype {

template <typename T>
struct alignas(sizeof(T) * 2) complex {
  T real;
  T imag;

  complex() = default;
  HOSTDEVICE complex(T r, T i) : real(r), imag(i) {}
  // From anything that becomes a T; implicit from numbers, so that `sum += 2` reads as it should.
  template <typename U, typename = typename std::enable_if<std::is_convertible<U, T>::value>::type>
  HOSTDEVICE complex(const U& r) : real(static_cast<T>(r)), imag(0) {}  // NOLINT
  template <typename U>
  HOSTDEVICE explicit complex(const complex<U>& other)
      : real(static_cast<T>(other.real)), imag(static_cast<T>(other.imag)) {}
  template <typename U>
  HOSTDEVICE explicit complex(const std::complex<U>& other)
      : real(static_cast<T>(other.real())), imag(static_cast<T>(other.imag())) {}

  template <typename U>
  explicit operator std::complex<U>() const {
    return {static_cast<U>(real), static_cast<U>(imag)};
  }
  // As Paddle's, these drop the imaginary part; only `bool` looks at both.
  HOSTDEVICE explicit operator bool() const { return real != T(0) || imag != T(0); }
  template <typename U, typename = typename std::enable_if<std::is_arithmetic<U>::value &&
                                                           !std::is_same<U, bool>::value>::type>
  HOSTDEVICE explicit operator U() const {
    return static_cast<U>(real);
  }

  complex& operator+=(const complex& b) { return *this = *this + b; }
  complex& operator-=(const complex& b) { return *this = *this - b; }
  complex& operator*=(const complex& b) { return *this = *this * b; }
  complex& operator/=(const complex& b) { return *this = *this / b; }

  friend complex operator+(const complex& a, const complex& b) {
    return {a.real + b.real, a.imag + b.imag};
  }
  friend complex operator-(const complex& a, const complex& b) {
    return {a.real - b.real, a.imag - b.imag};
  }
  friend complex operator-(const complex& a) { return {-a.real, -a.imag}; }
  friend complex operator*(const complex& a, const complex& b) {
    return complex(std::complex<T>(a) * std::complex<T>(b));
  }
  friend complex operator/(const complex& a, const complex& b) {
    return complex(std::complex<T>(a) / std::complex<T>(b));
  }
  friend bool operator==(const complex& a, const complex& b) {
    return a.real == b.real && a.imag == b.imag;
  }
  friend bool operator!=(const complex& a, const complex& b) { return !(a == b); }
  // By magnitude: sorting and comparison kernels that are instantiated for every dtype need an
  // order.
  friend bool operator<(const complex& a, const complex& b) { return abs(a) < abs(b); }
  friend bool operator<=(const complex& a, const complex& b) { return abs(a) <= abs(b); }
  friend bool operator>(const complex& a, const complex& b) { return abs(a) > abs(b); }
  friend bool operator>=(const complex& a, const complex& b) { return abs(a) >= abs(b); }
  friend T abs(const complex& a) { return std::abs(std::complex<T>(a)); }
  friend T norm(const complex& a) { return a.real * a.real + a.imag * a.imag; }
  friend T arg(const complex& a) { return std::arg(std::complex<T>(a)); }
  friend complex conj(const complex& a) { return {a.real, -a.imag}; }
  friend complex sqrt(const complex& a) { return complex(std::sqrt(std::complex<T>(a))); }
  friend complex exp(const complex& a) { return complex(std::exp(std::complex<T>(a))); }
  friend complex log(const complex& a) { return complex(std::log(std::complex<T>(a))); }
  friend bool isnan(const complex& a) { return std::isnan(a.real) || std::isnan(a.imag); }
  friend bool isinf(const complex& a) { return std::isinf(a.real) || std::isinf(a.imag); }
  friend bool isfinite(const complex& a) { return std::isfinite(a.real) && std::isfinite(a.imag); }
  friend std::ostream& operator<<(std::ostream& out, const complex& a) {
    return out << "(" << a.real << "," << a.imag << ")";
  }
};
static_assert(sizeof(complex<float>) == 8 && sizeof(complex<double>) == 16,
              "arrays are raw memory");

}  // namespace dtype
}  // namespace phi
