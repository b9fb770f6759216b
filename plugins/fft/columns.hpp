// SPDX-License-Identifier: Apache-2.0
// Transforms down the columns of a matrix of complex numbers that lies packed in memory: Stockham's
// algorithm (Cochran et al., What is the Fast Fourier Transform?, 1967), which needs no reordering. Each
// element of a vector belongs to another column.
#pragma once

#include <utility>

#include "plan.hpp"
#include "radix.hpp"

namespace tenon::fft::TENON_FFT_ISA {

// A matrix in packed memory, `width` V in a row. Stages read what `from(row, column)` returns and hand their
// results to `to(row, column, z)`: the first stage may read, and the last one write, other memory than that.
template <class V>
struct Packed {
  Complex<V>* data;
  int64_t width;
  Packed from(int64_t column) const { return {data + column, width}; }
  TENON_FFT_INLINE Complex<V> operator()(int64_t row, int64_t column) const {
    return data[row * width + column];
  }
  TENON_FFT_INLINE void operator()(int64_t row, int64_t column, Complex<V> z) const {
    data[row * width + column] = z;
  }
};

template <int R, class T, class V, class From, class To>
void run_stage(const Stage<T>& stage, int64_t width, From from, To to) {
  const int64_t done = stage.done, apart = done * stage.rest;
  const Root<T>* roots = stage.twiddles;
  for (int64_t p = 0; p < stage.rest; ++p, roots += R - 1)
    for (int64_t q = 0; q < done; ++q) {
      const int64_t in = p * done + q, out = p * done * R + q;
      for (int64_t column = 0; column < width; ++column) {
        Complex<V> x[R];
#pragma GCC unroll 13
        for (int j = 0; j < R; ++j) x[j] = from(in + j * apart, column);
        butterfly<R, T>(x);
        to(out, column, x[0]);
        if (p == 0) {
#pragma GCC unroll 13
          for (int j = 1; j < R; ++j) to(out + j * done, column, x[j]);
        } else {
#pragma GCC unroll 13
          for (int j = 1; j < R; ++j)
            to(out + j * done, column, x[j] * Complex<T>{roots[j - 1].re, roots[j - 1].im});
        }
      }
    }
}

// A prime for which no butterfly is written, by its definition with the symmetry of cosines and sines.
template <class T, class V, class From, class To>
void run_prime_stage(const Stage<T>& stage, int64_t width, From from, To to) {
  const int64_t radix = stage.radix, half = (radix - 1) / 2;
  const int64_t done = stage.done, apart = done * stage.rest;
  Complex<V> sum[kMaxRadix / 2], difference[kMaxRadix / 2];
  for (int64_t p = 0; p < stage.rest; ++p) {
    const Root<T>* twiddles = stage.twiddles + p * (radix - 1);
    for (int64_t t = 0; t < done * width; ++t) {
      const int64_t in = p * done + t / width, out = p * done * radix + t / width;
      const int64_t column = t % width;
      const Complex<V> first = from(in, column);
      Complex<V> all = first;
      for (int64_t j = 0; j < half; ++j) {
        const Complex<V> a = from(in + (j + 1) * apart, column);
        const Complex<V> b = from(in + (radix - 1 - j) * apart, column);
        sum[j] = a + b;
        difference[j] = a - b;
        all = all + sum[j];
      }
      to(out, column, all);
      for (int64_t k = 1; k <= half; ++k) {
        Complex<V> even = first, odd = {V{}, V{}};
        int64_t at = 0;
        for (int64_t j = 0; j < half; ++j) {
          at += k;
          if (at >= radix) at -= radix;
          const T c = stage.roots[at].re, s = -stage.roots[at].im;
          even = {even.re + sum[j].re * c, even.im + sum[j].im * c};
          odd = {odd.re + difference[j].re * s, odd.im + difference[j].im * s};
        }
        const Root<T> w = twiddles[k - 1], v = twiddles[radix - k - 1];
        to(out + k * done, column,
           Complex<V>{even.re + odd.im, even.im - odd.re} * Complex<T>{w.re, w.im});
        to(out + (radix - k) * done, column,
           Complex<V>{even.re - odd.im, even.im + odd.re} * Complex<T>{v.re, v.im});
      }
    }
  }
}

template <class T, class V, class From, class To>
void run_any_stage(const Stage<T>& stage, int64_t width, From from, To to) {
  switch (stage.radix) {
    case 2:
      return run_stage<2, T, V>(stage, width, from, to);
    case 3:
      return run_stage<3, T, V>(stage, width, from, to);
    case 4:
      return run_stage<4, T, V>(stage, width, from, to);
    case 5:
      return run_stage<5, T, V>(stage, width, from, to);
    case 7:
      return run_stage<7, T, V>(stage, width, from, to);
    case 8:
      return run_stage<8, T, V>(stage, width, from, to);
    case 11:
      return run_stage<11, T, V>(stage, width, from, to);
    case 13:
      return run_stage<13, T, V>(stage, width, from, to);
    default:
      return run_prime_stage<T, V>(stage, width, from, to);
  }
}

// Back and forth between two buffers; returns the one that has the result.
template <class T, class V>
Complex<V>* run_stages(const Plan<T>& plan, int64_t width, Complex<V>* data, Complex<V>* work) {
  for (const Stage<T>& stage : plan.stages) {
    run_any_stage<T, V>(stage, width, Packed<V>{data, width}, Packed<V>{work, width});
    std::swap(data, work);
  }
  return data;
}

template <class T, class V, class From, class To>
void run_stages_between(const Plan<T>& plan, int64_t width, From from, To to, Complex<V>* data,
                        Complex<V>* work) {
  const size_t count = plan.stages.size();
  if (count == 0) {
    for (int64_t column = 0; column < width; ++column) to(0, column, from(0, column));
    return;
  }
  if (count == 1) return run_any_stage<T, V>(plan.stages[0], width, from, to);
  run_any_stage<T, V>(plan.stages[0], width, from, Packed<V>{data, width});
  for (size_t i = 1; i + 1 < count; ++i, std::swap(data, work))
    run_any_stage<T, V>(plan.stages[i], width, Packed<V>{data, width}, Packed<V>{work, width});
  run_any_stage<T, V>(plan.stages[count - 1], width, Packed<V>{data, width}, to);
}

// Bluestein's algorithm: a transform is the convolution with a chirp of what is multiplied by it. The
// inverse transform in it is the transform with real and imaginary parts swapped before and after.
template <class T, class V, class From, class To>
void run_bluestein(const Plan<T>& plan, int64_t width, From from, To to, Complex<V>* data,
                   Complex<V>* work) {
  const int64_t padded = plan.convolution->n;
  const auto times = [](Complex<V> z, Root<T> w) { return z * Complex<T>{w.re, w.im}; };
  for (int64_t k = 0; k < plan.n; ++k)
    for (int64_t column = 0; column < width; ++column)
      data[k * width + column] = times(from(k, column), plan.chirp[static_cast<size_t>(k)]);
  for (int64_t i = plan.n * width; i < padded * width; ++i) data[i] = {V{}, V{}};
  Complex<V>* const spectrum = run_stages(*plan.convolution, width, data, work);
  for (int64_t k = 0; k < padded; ++k)
    for (int64_t column = 0; column < width; ++column) {
      Complex<V>& z = spectrum[k * width + column];
      z = swapped(times(z, plan.chirp_spectrum[static_cast<size_t>(k)]));
    }
  const Complex<V>* const result =
      run_stages(*plan.convolution, width, spectrum, spectrum == data ? work : data);
  for (int64_t k = 0; k < plan.n; ++k)
    for (int64_t column = 0; column < width; ++column)
      to(k, column, times(swapped(result[k * width + column]), plan.chirp[static_cast<size_t>(k)]));
}

// Transforms `width` columns of V from where `from` reads to where `to` writes, which may be one place.
// `data` and `work` have room for plan.rows() rows each, and lie elsewhere.
template <class T, class V, class From, class To>
void transform_columns(const Plan<T>& plan, int64_t width, From from, To to, Complex<V>* data,
                       Complex<V>* work) {
  if (plan.convolution)
    run_bluestein<T, V>(plan, width, from, to, data, work);
  else
    run_stages_between<T, V>(plan, width, from, to, data, work);
}

// The same for columns that stand in `data` already; returns `data` or `work`, whichever has the result.
template <class T, class V>
Complex<V>* transform_columns(const Plan<T>& plan, int64_t width, Complex<V>* data,
                              Complex<V>* work) {
  if (!plan.convolution) return run_stages(plan, width, data, work);
  const Packed<V> rows{data, width};
  run_bluestein<T, V>(plan, width, rows, rows, data, work);
  return data;
}

}  // namespace tenon::fft::TENON_FFT_ISA
