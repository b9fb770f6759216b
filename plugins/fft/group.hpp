// SPDX-License-Identifier: Apache-2.0
// As many lines of a tensor as a vector has elements, and how they are read into rows of vectors, of which
// element l belongs to line l, and written from there.
#pragma once

#include "vector.hpp"

namespace tenon::fft::TENON_FFT_ISA {

// One side of a pass: where kLanes lines begin, and the distance of elements along them, in bytes.
template <class T>
struct Group {
  char* lines[kLanes<T>];
  int64_t stride;

  // Each line begins where the element of the one before it ends.
  bool is_adjacent(int64_t element) const {
    for (int l = 1; l < kLanes<T>; ++l)
      if (lines[l] != lines[0] + l * element) return false;
    return true;
  }
  T* at(int l, int64_t index) const { return reinterpret_cast<T*>(lines[l] + index * stride); }
};

// Lines of T that lie together: element i of each line becomes the i-th vector that `take` gets.
template <class T, class Take>
TENON_FFT_INLINE void load_transposed(const Group<T>& group, int64_t count, Take take) {
  constexpr int n = kLanes<T>;
  int64_t i = 0;
  Vector<T> rows[n];
  for (; i + n <= count; i += n) {
#pragma GCC unroll 16
    for (int l = 0; l < n; ++l) rows[l] = load(reinterpret_cast<T*>(group.lines[l]) + i);
    transpose<T>(rows);
#pragma GCC unroll 16
    for (int k = 0; k < n; ++k) take(i + k, rows[k]);
  }
  for (; i < count; ++i) {
    Vector<T> v{};
    for (int l = 0; l < n; ++l) v[l] = reinterpret_cast<T*>(group.lines[l])[i];
    take(i, v);
  }
}
template <class T, class Give>
TENON_FFT_INLINE void store_transposed(const Group<T>& group, int64_t count, Give give) {
  constexpr int n = kLanes<T>;
  int64_t i = 0;
  Vector<T> rows[n];
  for (; i + n <= count; i += n) {
#pragma GCC unroll 16
    for (int k = 0; k < n; ++k) rows[k] = give(i + k);
    transpose<T>(rows);
#pragma GCC unroll 16
    for (int l = 0; l < n; ++l) store(reinterpret_cast<T*>(group.lines[l]) + i, rows[l]);
  }
  for (; i < count; ++i) {
    const Vector<T> v = give(i);
    for (int l = 0; l < n; ++l) reinterpret_cast<T*>(group.lines[l])[i] = v[l];
  }
}

// Vectors seen as numbers one after another: part 0 of Complex<V> number i is vector 2 i, part 1 the next.
template <class T>
TENON_FFT_INLINE Vector<T>* parts(Complex<Vector<T>>* rows) {
  return reinterpret_cast<Vector<T>*>(rows);
}

template <class T>
void load_complex(const Group<T>& group, int64_t count, Complex<Vector<T>>* rows) {
  constexpr int n = kLanes<T>;
  if (group.stride == 2 * int64_t{sizeof(T)}) {
    Vector<T>* const to = parts<T>(rows);
    load_transposed(group, 2 * count, [&](int64_t i, Vector<T> v) { to[i] = v; });
  } else if (group.is_adjacent(2 * sizeof(T))) {
    for (int64_t i = 0; i < count; ++i) rows[i] = load_interleaved(group.at(0, i));
  } else {
    for (int64_t i = 0; i < count; ++i)
      for (int l = 0; l < n; ++l) {
        const T* const from = group.at(l, i);
        rows[i].re[l] = from[0];
        rows[i].im[l] = from[1];
      }
  }
}

template <class T>
void store_complex(const Group<T>& group, int64_t count, const Complex<Vector<T>>* rows, T scale) {
  constexpr int n = kLanes<T>;
  if (group.stride == 2 * int64_t{sizeof(T)}) {
    const Vector<T>* const from = parts<T>(const_cast<Complex<Vector<T>>*>(rows));
    store_transposed(group, 2 * count, [&](int64_t i) { return from[i] * scale; });
  } else if (group.is_adjacent(2 * sizeof(T))) {
    for (int64_t i = 0; i < count; ++i)
      store_interleaved(group.at(0, i), {rows[i].re * scale, rows[i].im * scale});
  } else {
    for (int64_t i = 0; i < count; ++i)
      for (int l = 0; l < n; ++l) {
        T* const to = group.at(l, i);
        to[0] = rows[i].re[l] * scale;
        to[1] = rows[i].im[l] * scale;
      }
  }
}

// Vector i of `values` has element i of each line of real numbers.
template <class T, class Take>
TENON_FFT_INLINE void load_real(const Group<T>& group, int64_t count, Take take) {
  if (group.stride == int64_t{sizeof(T)}) {
    load_transposed(group, count, take);
  } else if (group.is_adjacent(sizeof(T))) {
    for (int64_t i = 0; i < count; ++i) take(i, load(group.at(0, i)));
  } else {
    for (int64_t i = 0; i < count; ++i) {
      Vector<T> v{};
      for (int l = 0; l < kLanes<T>; ++l) v[l] = *group.at(l, i);
      take(i, v);
    }
  }
}
template <class T, class Give>
TENON_FFT_INLINE void store_real(const Group<T>& group, int64_t count, Give give) {
  if (group.stride == int64_t{sizeof(T)}) {
    store_transposed(group, count, give);
  } else if (group.is_adjacent(sizeof(T))) {
    for (int64_t i = 0; i < count; ++i) store(group.at(0, i), give(i));
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const Vector<T> v = give(i);
      for (int l = 0; l < kLanes<T>; ++l) *group.at(l, i) = v[l];
    }
  }
}

}  // namespace tenon::fft::TENON_FFT_ISA
