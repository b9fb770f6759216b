// SPDX-License-Identifier: Apache-2.0
#include "transform.hpp"

#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>
#include <vector>

namespace simulated {
namespace {

using Complex = std::complex<double>;

// Extents of one side: that of the last axis is halved where a real transform has complex numbers.
long long extent(const Fft& fft, int axis, bool of_input) {
  const bool halved = axis == fft.rank - 1 && (of_input ? fft.real_out : fft.real_in);
  return halved ? fft.n[axis] / 2 + 1 : fft.n[axis];
}

long long offset_of(const Fft& fft, const FftSide& side, long long batch, const long long* index) {
  long long nested = index[0];
  for (int axis = 1; axis < fft.rank; ++axis) nested = nested * side.embed[axis] + index[axis];
  return batch * side.distance + nested * side.stride;
}

Complex load(const Fft& fft, const char* memory, long long at) {
  if (fft.real_in)
    return fft.is_double ? reinterpret_cast<const double*>(memory)[at]
                         : static_cast<double>(reinterpret_cast<const float*>(memory)[at]);
  if (fft.is_double) return reinterpret_cast<const Complex*>(memory)[at];
  const auto x = reinterpret_cast<const std::complex<float>*>(memory)[at];
  return {static_cast<double>(x.real()), static_cast<double>(x.imag())};
}

void store(const Fft& fft, char* memory, long long at, Complex x) {
  if (fft.real_out && fft.is_double)
    reinterpret_cast<double*>(memory)[at] = x.real();
  else if (fft.real_out)
    reinterpret_cast<float*>(memory)[at] = static_cast<float>(x.real());
  else if (fft.is_double)
    reinterpret_cast<Complex*>(memory)[at] = x;
  else
    reinterpret_cast<std::complex<float>*>(memory)[at] = {static_cast<float>(x.real()),
                                                          static_cast<float>(x.imag())};
}

// Calls f(index) for every element of a packed block with these extents.
template <class F>
void each(const Fft& fft, bool of_input, const F& f) {
  long long index[3] = {};
  for (;;) {
    f(index);
    int axis = fft.rank - 1;
    for (; axis >= 0 && ++index[axis] == extent(fft, axis, of_input); --axis) index[axis] = 0;
    if (axis < 0) return;
  }
}

// One axis of a packed block.
void transform_axis(std::vector<Complex>& block, const Fft& fft, int axis) {
  const long long n = fft.n[axis];
  long long inner = 1, outer = 1;
  for (int i = 0; i < fft.rank; ++i) (i < axis ? outer : inner) *= i == axis ? 1 : fft.n[i];
  std::vector<Complex> roots(static_cast<size_t>(n)), line(static_cast<size_t>(n));
  for (long long k = 0; k < n; ++k)
    roots[static_cast<size_t>(k)] =
        std::polar(1.0, fft.direction * 2 * std::numbers::pi * static_cast<double>(k) /
                            static_cast<double>(n));
  for (long long i = 0; i < outer * inner; ++i) {
    Complex* first = block.data() + i / inner * n * inner + i % inner;
    for (long long k = 0; k < n; ++k) {
      Complex sum = 0;
      for (long long j = 0; j < n; ++j)
        sum += first[j * inner] * roots[static_cast<size_t>(j * k % n)];
      line[static_cast<size_t>(k)] = sum;
    }
    for (long long k = 0; k < n; ++k) first[k * inner] = line[static_cast<size_t>(k)];
  }
}

long long packed_index(const Fft& fft, const long long* index) {
  long long at = 0;
  for (int axis = 0; axis < fft.rank; ++axis) at = at * fft.n[axis] + index[axis];
  return at;
}

}  // namespace

uint64_t fft_element_bytes(const Fft& fft, bool of_input) {
  const bool is_real = of_input ? fft.real_in : fft.real_out;
  return (fft.is_double ? 8u : 4u) * (is_real ? 1u : 2u);
}

uint64_t fft_extent_bytes(const Fft& fft, bool of_input) {
  long long last[3];
  for (int axis = 0; axis < fft.rank; ++axis) last[axis] = extent(fft, axis, of_input) - 1;
  const FftSide& side = of_input ? fft.in : fft.out;
  return static_cast<uint64_t>(offset_of(fft, side, fft.batch - 1, last) + 1) *
         fft_element_bytes(fft, of_input);
}

void run_fft(const Fft& fft, char* in, char* out) {
  long long numel = 1;
  for (int axis = 0; axis < fft.rank; ++axis) numel *= fft.n[axis];
  const int last = fft.rank - 1;
  for (long long batch = 0; batch < fft.batch; ++batch) {
    std::vector<Complex> block(static_cast<size_t>(numel));
    each(fft, true, [&](const long long* index) {
      const Complex x = load(fft, in, offset_of(fft, fft.in, batch, index));
      block[static_cast<size_t>(packed_index(fft, index))] = x;
      if (!fft.real_out) return;
      // The other half: the conjugate of what is opposite along all axes.
      long long opposite[3];
      bool is_own = true;
      for (int axis = 0; axis < fft.rank; ++axis) {
        opposite[axis] = (fft.n[axis] - index[axis]) % fft.n[axis];
        is_own = is_own && opposite[axis] == index[axis];
      }
      const size_t at = static_cast<size_t>(packed_index(fft, opposite));
      if (is_own)
        block[at] = x.real() + 7 * x.imag();
      else if (opposite[last] > fft.n[last] / 2)
        block[at] = std::conj(x);
    });
    for (int axis = 0; axis < fft.rank; ++axis) transform_axis(block, fft, axis);
    if (fft.real_out)
      each(fft, true, [&](const long long* index) {
        std::memset(in + offset_of(fft, fft.in, batch, index) *
                             static_cast<long long>(fft_element_bytes(fft, true)),
                    0xff, fft_element_bytes(fft, true));
      });
    each(fft, false, [&](const long long* index) {
      store(fft, out, offset_of(fft, fft.out, batch, index),
            block[static_cast<size_t>(packed_index(fft, index))]);
    });
  }
}

}  // namespace simulated
