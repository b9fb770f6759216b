// SPDX-License-Identifier: Apache-2.0
// Channels of one image, padded with zeros or another number, and with columns a stride apart made
// adjacent, so that a vector of results reads a vector of pixels under each tap.
#pragma once

#include "gemm/micro_kernel.hpp"
#include "pool/window.hpp"
#include "simd/shuffle.hpp"

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// Loads from[0], from[2], ...; reads nothing beyond the last of them.
template <class T>
[[gnu::always_inline]] inline typename VectorOf<T>::type load_every_second(const T* from) {
  using Unaligned = typename VectorOf<T>::unaligned;
  static constexpr int width = kWidth<T>;
  const typename VectorOf<T>::type low = *reinterpret_cast<const Unaligned*>(from);
  const typename VectorOf<T>::type high = *reinterpret_cast<const Unaligned*>(from + width - 1);
  return shuffle(low, high, [](int i) { return 2 * i < width ? 2 * i : 2 * i + 1; });
}

// to[i] = from[step * i]; reads and writes nothing beyond the last element.
template <class T>
[[gnu::always_inline]] inline void copy_every(const T* from, int64_t step, T* to, int64_t n) {
  using Unaligned = typename VectorOf<T>::unaligned;
  constexpr int64_t width = kWidth<T>;
  if (step <= 2 && n >= width) {
    for (int64_t i = 0; i < n; i += width) {
      const int64_t at = std::min(i, n - width);  // The last vector overlaps the one before.
      *reinterpret_cast<Unaligned*>(to + at) = step == 1
                                                   ? *reinterpret_cast<const Unaligned*>(from + at)
                                                   : Unaligned(load_every_second(from + 2 * at));
    }
  } else if (step == 1) {
    if constexpr (VecMask<T>::kMasked) {
      const VecMask<T> mask(n);
      mask.store(to, mask.load(from));
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = from[i];
    }
  } else if (VecMask<T>::kMasked && step == 2) {
    const VecMask<T> low(2 * n - 1), high(2 * n - 1 - width);
    VecMask<T>(n).store(to, even_elements(low.load(from), high.load(from + width)));
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
  }
}

template <class T>
class PaddedPlanes {
 public:
  explicit PaddedPlanes(const Window& s)
      : s_(s),
        rows_((s.rows - 1) * s.stride[0] + (s.kernel[0] - 1) * s.dilation[0] + 1),
        part_((s.columns - 1) + (s.kernel[1] - 1) * s.dilation[1] / s.stride[1] + 1) {}

  // Elements of `channels` planes, plus a vector that may be read past the end.
  int64_t count(int64_t channels) const { return channels * plane() + 2 * kWidth<T>; }
  int64_t row() const { return part_ * s_.stride[1]; }

  // Where column v of the taps begins in a row.
  int64_t across(int64_t v) const {
    const int64_t x = v * s_.dilation[1];
    return x % s_.stride[1] * part_ + x / s_.stride[1];
  }
  // Where tap (u, v) of channel c begins for the first result.
  int64_t offset(int64_t c, int64_t u, int64_t v) const {
    return c * plane() + u * s_.dilation[0] * row() + across(v);
  }

  // Writes the padding, which stays valid however often pixels are filled in.
  void clear(int64_t channels, T* to, T outside = T(0)) const {
    std::fill_n(to, count(channels), outside);
  }

  void fill(const T* image, int64_t channels, T* to) const {
    const int64_t step = s_.stride[1];
    const int64_t first = std::max<int64_t>(0, s_.padding[0]);
    const int64_t last = std::min(rows_, s_.height + s_.padding[0]);
    for (int64_t r = 0; r < step; ++r) {
      const Inside inside(r - s_.padding[1], s_.width, step, part_);
      const int64_t n = inside.end - inside.begin;
      const T* from = image + r - s_.padding[1] + inside.begin * step;
      T* part = to + r * part_ + inside.begin;
      for (int64_t c = 0; n > 0 && c < channels; ++c) {
        for (int64_t y = first; y < last; ++y) {
          copy_every(from + c * s_.height * s_.width + (y - s_.padding[0]) * s_.width, step,
                     part + c * plane() + y * row(), n);
        }
      }
    }
  }

 private:
  int64_t plane() const { return rows_ * row(); }
  const Window& s_;
  int64_t rows_, part_;  // Rows of a plane, and columns of one part of a row.
};

}  // namespace tenon::cpu::TENON_CPU_ISA
