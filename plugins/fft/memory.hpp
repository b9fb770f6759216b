// SPDX-License-Identifier: Apache-2.0
// Complex numbers in the caller's memory as the rows and columns of a matrix, for transforms down its columns.
#pragma once

#include "vector.hpp"

namespace tenon::fft::TENON_FFT_ISA {

// What happens to the numbers of a line on the way: an inverse transform is one with real and imaginary
// parts swapped before and after.
template <class T>
struct Treatment {
  bool swap;
  T scale;
};

template <class T>
TENON_FFT_INLINE Complex<Vector<T>> load_columns(const T* at, int64_t count) {
  if (count >= kLanes<T>) return load_interleaved(at);
  return load_interleaved(at, count);
}
template <class T>
TENON_FFT_INLINE void store_columns(T* at, Complex<Vector<T>> z, int64_t count) {
  if (count >= kLanes<T>) return store_interleaved(at, z);
  store_interleaved(at, z, count);
}

// Rows whose numbers lie one after another; the distances of rows are in bytes. V is T, for a column at a time,
// or a vector of T.
template <class T, class V>
struct Memory {
  const char* in;
  char* out;
  int64_t in_stride, out_stride;
  Treatment<T> treatment;
  int64_t columns;  // numbers in a row

  // From vector `column` on.
  Memory from(int64_t column) const {
    const int64_t first = column * kLanes<T>, bytes = 2 * first * int64_t{sizeof(T)};
    return {in + bytes, out + bytes, in_stride, out_stride, treatment, columns - first};
  }

  // Rows that lie one after another, too.
  static Memory packed(const T* in, T* out, Treatment<T> treatment, int64_t columns) {
    const int64_t stride = 2 * columns * int64_t{sizeof(T)};
    return {reinterpret_cast<const char*>(in),
            reinterpret_cast<char*>(out),
            stride,
            stride,
            treatment,
            columns};
  }
  TENON_FFT_INLINE Complex<V> operator()(int64_t row, int64_t column) const {
    const T* const at = reinterpret_cast<const T*>(in + row * in_stride);
    Complex<V> z;
    if constexpr (std::is_same_v<V, T>) {
      z = {at[2 * column], at[2 * column + 1]};
    } else {
      const int64_t first = column * kLanes<T>;
      z = load_columns(at + 2 * first, columns - first);
    }
    return treatment.swap ? swapped(z) : z;
  }
  TENON_FFT_INLINE void operator()(int64_t row, int64_t column, Complex<V> z) const {
    T* const at = reinterpret_cast<T*>(out + row * out_stride);
    if (treatment.swap) z = swapped(z);
    z = {z.re * treatment.scale, z.im * treatment.scale};
    if constexpr (std::is_same_v<V, T>) {
      at[2 * column] = z.re;
      at[2 * column + 1] = z.im;
    } else {
      const int64_t first = column * kLanes<T>;
      store_columns(at + 2 * first, z, columns - first);
    }
  }
};

}  // namespace tenon::fft::TENON_FFT_ISA
