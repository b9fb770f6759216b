// SPDX-License-Identifier: Apache-2.0
// Real numbers: a line of even length is half as many complex numbers, whose transform is taken apart; the
// other direction puts it together. Lines of odd length are complex ones without imaginary parts.
#pragma once

#include <memory>

#include "columns.hpp"
#include "recent.hpp"

namespace tenon::fft::TENON_FFT_ISA {

// exp(-2 pi i k / n) for k = 0 ... n / 4, and as many more as a vector may read beyond.
template <class T>
struct HalfRoots {
  explicit HalfRoots(int64_t n) {
    for (int64_t k = 0; k <= n / 4 + kLanes<T>; ++k) items.push_back(root_of_unity<T>(k, n));
  }
  Complex<T> operator[](int64_t k) const {
    const Root<T> root = items[static_cast<size_t>(k)];
    return {root.re, root.im};
  }
  // Roots k, k + 1, ... of a vector.
  TENON_FFT_INLINE Complex<Vector<T>> vector(int64_t k) const {
    return load_interleaved(&items[static_cast<size_t>(k)].re);
  }
  std::vector<Root<T>> items;
};
template <class T>
std::shared_ptr<const HalfRoots<T>> half_roots_of(int64_t n) {
  static Recent<HalfRoots<T>> recent;
  return recent.get(n, [n] { return std::make_shared<const HalfRoots<T>>(n); });
}

// Numbers k and n / 2 - k of the transform of x, from those of the transform of x[2 j] + i x[2 j + 1]; w is
// root k.
template <class T>
struct TakeApart {
  template <class V, class W>
  TENON_FFT_INLINE void operator()(Complex<V>& a, Complex<V>& b, Complex<W> w) const {
    const T one_half = T{0.5};
    const Complex<V> even = {(a.re + b.re) * one_half, (a.im - b.im) * one_half};
    const Complex<V> odd = {(a.im + b.im) * one_half, (b.re - a.re) * one_half};
    const Complex<V> rotated = odd * w;
    a = even + rotated;
    b = {even.re - rotated.re, rotated.im - even.im};
  }
};
// The other way.
struct PutTogether {
  template <class V, class W>
  TENON_FFT_INLINE void operator()(Complex<V>& a, Complex<V>& b, Complex<W> w) const {
    const Complex<V> even = {a.re + b.re, a.im - b.im};
    const Complex<V> odd = Complex<V>{a.re - b.re, a.im + b.im} * Complex<W>{w.re, -w.im};
    a = {even.re - odd.im, even.im + odd.re};
    b = {even.re + odd.im, odd.re - even.im};
  }
};

// z holds the transform of x[2 j] + i x[2 j + 1], of length n / 2; `z(k)` is number k. Afterwards
// z(0) ... z(n / 2) are those of the transform of x.
template <class T, class At>
TENON_FFT_INLINE void take_apart(int64_t n, const HalfRoots<T>& roots, At z) {
  const int64_t half = n / 2;
  const auto first = z(0);
  using V = decltype(first.re);
  for (int64_t k = 1; k <= half / 2; ++k) {
    auto a = z(k), b = z(half - k);
    TakeApart<T>{}(a, b, roots[k]);
    z(k, a);
    z(half - k, b);
  }
  z(0, Complex<V>{first.re + first.im, V{}});
  z(half, Complex<V>{first.re - first.im, V{}});
}

// The other way: numbers 0 ... n / 2 of a transform become what the inverse transform of half the length
// makes x[2 j] + i x[2 j + 1] of. Imaginary parts of the first and the last one count as 0.
template <class T, class At>
TENON_FFT_INLINE void put_together(int64_t n, const HalfRoots<T>& roots, At z) {
  const int64_t half = n / 2;
  const auto first = z(0), last = z(half);
  using V = decltype(first.re);
  for (int64_t k = 1; k <= half / 2; ++k) {
    auto a = z(k), b = z(half - k);
    PutTogether{}(a, b, roots[k]);
    z(k, a);
    z(half - k, b);
  }
  z(0, Complex<V>{first.re + last.re, first.re - last.re});
}

template <class T>
TENON_FFT_INLINE Complex<Vector<T>> reversed(Complex<Vector<T>> z) {
  const auto from_the_end = [](int i) { return kLanes<T> - 1 - i; };
  return {shuffle<T>(z.re, z.re, from_the_end), shuffle<T>(z.im, z.im, from_the_end)};
}

// `pair` of numbers k and half - k of one line, for k = 1 ... half / 2, a vector of pairs at a time. `in` and
// `out` may be the same: the last vectors, which may overlap, are both read before one is written.
template <class T, class Pair>
void for_pairs(int64_t half, const HalfRoots<T>& roots, const T* in, T* out, Pair pair) {
  int64_t k = 1;
  for (; half - 2 * k + 1 >= kLanes<T>; k += kLanes<T>) {
    const int64_t back = half - k - kLanes<T> + 1;
    Complex<Vector<T>> a = load_interleaved(in + 2 * k);
    Complex<Vector<T>> b = reversed<T>(load_interleaved(in + 2 * back));
    pair(a, b, roots.vector(k));
    store_interleaved(out + 2 * k, a);
    store_interleaved(out + 2 * back, reversed<T>(b));
  }
  for (; k <= half / 2; ++k) {
    Complex<T> a = {in[2 * k], in[2 * k + 1]};
    Complex<T> b = {in[2 * (half - k)], in[2 * (half - k) + 1]};
    pair(a, b, roots[k]);
    out[2 * k] = a.re;
    out[2 * k + 1] = a.im;
    out[2 * (half - k)] = b.re;
    out[2 * (half - k) + 1] = b.im;
  }
}

// take_apart() of one line, in place.
template <class T>
void take_apart_line(int64_t n, const HalfRoots<T>& roots, T* z) {
  const int64_t half = n / 2;
  const T re = z[0], im = z[1];
  for_pairs(half, roots, z, z, TakeApart<T>{});
  z[0] = re + im;
  z[n] = re - im;
  z[1] = z[n + 1] = 0;
}

// put_together() of one line.
template <class T>
void put_together_line(int64_t n, const HalfRoots<T>& roots, const T* in, T* out) {
  const T first = in[0], last = in[n];
  for_pairs(n / 2, roots, in, out, PutTogether{});
  out[0] = first + last;
  out[1] = first - last;
}

}  // namespace tenon::fft::TENON_FFT_ISA
