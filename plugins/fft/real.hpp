// SPDX-License-Identifier: Apache-2.0
// Real numbers: a line of even length is half as many complex numbers, whose transform is taken apart; the
// other direction puts it together. Lines of odd length are complex ones without imaginary parts.
#pragma once

#include <memory>

#include "columns.hpp"
#include "recent.hpp"

namespace tenon::fft::TENON_FFT_ISA {

// exp(-2 pi i k / n) for k = 0 ... n / 4.
template <class T>
struct HalfRoots {
  explicit HalfRoots(int64_t n) {
    for (int64_t k = 0; k <= n / 4; ++k) items.push_back(root_of_unity<T>(k, n));
  }
  std::vector<Root<T>> items;
};
template <class T>
std::shared_ptr<const HalfRoots<T>> half_roots_of(int64_t n) {
  static Recent<HalfRoots<T>> recent;
  return recent.get(n, [n] { return std::make_shared<const HalfRoots<T>>(n); });
}

// z holds the transform of x[2 j] + i x[2 j + 1], of length n / 2; `at(k)` is a reference to number k.
// Afterwards at(0) ... at(n / 2) are those of the transform of x.
template <class T, class At>
TENON_FFT_INLINE void take_apart(int64_t n, const HalfRoots<T>& roots, At at) {
  const int64_t half = n / 2;
  const auto first = at(0);
  using V = decltype(first.re);
  const T one_half = T{0.5};
  for (int64_t k = 1; k <= half / 2; ++k) {
    const auto a = at(k), b = at(half - k);
    const Root<T> w = roots.items[static_cast<size_t>(k)];
    const Complex<V> even = {(a.re + b.re) * one_half, (a.im - b.im) * one_half};
    const Complex<V> odd = {(a.im + b.im) * one_half, (b.re - a.re) * one_half};
    const Complex<V> rotated = odd * Complex<T>{w.re, w.im};
    at(k, even + rotated);
    at(half - k, Complex<V>{even.re - rotated.re, rotated.im - even.im});
  }
  at(0, Complex<V>{first.re + first.im, V{}});
  at(half, Complex<V>{first.re - first.im, V{}});
}

// The other way: numbers 0 ... n / 2 of a transform become what the inverse transform of half the length
// makes x[2 j] + i x[2 j + 1] of. Imaginary parts of the first and the last one count as 0.
template <class T, class At>
TENON_FFT_INLINE void put_together(int64_t n, const HalfRoots<T>& roots, At at) {
  const int64_t half = n / 2;
  const auto first = at(0), last = at(half);
  using V = decltype(first.re);
  for (int64_t k = 1; k <= half / 2; ++k) {
    const auto a = at(k), b = at(half - k);
    const Root<T> w = roots.items[static_cast<size_t>(k)];
    const Complex<V> even = {a.re + b.re, a.im - b.im};
    const Complex<V> odd = Complex<V>{a.re - b.re, a.im + b.im} * Complex<T>{w.re, -w.im};
    at(k, Complex<V>{even.re - odd.im, even.im + odd.re});
    at(half - k, Complex<V>{even.re + odd.im, odd.re - even.im});
  }
  at(0, Complex<V>{first.re + last.re, first.re - last.re});
}

}  // namespace tenon::fft::TENON_FFT_ISA
