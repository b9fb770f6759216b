// SPDX-License-Identifier: Apache-2.0
// Input gradients of depthwise convolutions with a stride of 2 across columns. Even and odd pixels
// read different taps; both are accumulated from the same vectors of gradients and interleaved when
// they are stored.
#pragma once

#include "conv/padded_nchw.hpp"
#include "conv/shapes.hpp"
#include "parallel_scratch.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// The taps that the pixels of one phase read: the offset of the gradient under each tap from that
// of the first result, and the index of its weight.
struct PhaseTaps {
  struct Tap {
    int64_t offset, weight;
  };
  const Tap* first;
  int64_t count;
};

// Computes one row of pixels; `grads` are the gradients of the first results that it may read.
template <class T>
void depthwise_phases_row(const PhaseTaps& even, const PhaseTaps& odd, const T* grads,
                          const T* weight, T* to, int64_t n) {
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  constexpr int64_t width = kWidth<T>;
  const auto sum_of = [&](const PhaseTaps& taps, int64_t b) {
    Vector acc{};
    for (int64_t t = 0; t < taps.count; ++t) {
      const auto [offset, index] = taps.first[t];
      acc += weight[index] * *reinterpret_cast<const Unaligned*>(grads + offset + b);
    }
    return acc;
  };
  for (int64_t b = 0; 2 * b < n; b += width) {
    const Vector a = sum_of(even, b), c = sum_of(odd, b);
    const Vector low = interleave_low(a, c), high = interleave_high(a, c);
    const int64_t left = n - 2 * b;
    if (left >= 2 * width) {
      *reinterpret_cast<Unaligned*>(to + 2 * b) = low;
      *reinterpret_cast<Unaligned*>(to + 2 * b + width) = high;
    } else if constexpr (VecMask<T>::kMasked) {
      VecMask<T>(left).store(to + 2 * b, low);
      VecMask<T>(left - width).store(to + 2 * b + width, high);
    } else {
      for (int64_t j = 0; j < left; ++j) to[2 * b + j] = j < width ? low[j] : high[j - width];
    }
  }
}

inline bool suits_depthwise_phases(const ConvShapes& s) {
  return s.is_depthwise() && s.group_filters() == 1 && s.stride[1] == 2;
}

// For dense NCHW planes.
template <class T>
tenon_status run_depthwise_phases(tenon_ctx* ctx, const ConvShapes& s, const T* grad,
                                  const T* weight, T* x, tenon_err* err) {
  const auto phase = [&](int axis, int64_t i) {
    return Phase(i, axis == 0 ? s.height : s.width, s.kernel[axis], s.stride[axis], s.padding[axis],
                 s.dilation[axis]);
  };
  // The gradients that all phases read, described as results of single taps.
  Window seen{s.rows, s.columns, 1, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}};
  for (int axis = 0; axis < 2; ++axis) {
    int64_t last = 0;
    for (int64_t i = 0; i < s.stride[axis]; ++i) {
      const Phase p = phase(axis, i);
      if (p.taps == 0 || p.pixels == 0) continue;
      seen.padding[axis] = std::max(seen.padding[axis], p.padding);
      last = std::max(last, p.pixels - 1 + (p.taps - 1) * p.dilation - p.padding);
    }
    (axis == 0 ? seen.rows : seen.columns) = seen.padding[axis] + last + 1;
  }
  const PaddedPlanes<T> padded(seen);
  // Taps by phases of rows, then of columns; each tap belongs to one phase.
  void* memory = nullptr;
  const auto taps_bytes = static_cast<uint64_t>(s.taps()) * sizeof(PhaseTaps::Tap);
  const auto bytes = taps_bytes + 2 * static_cast<uint64_t>(s.stride[0]) * sizeof(PhaseTaps);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) {
    return status;
  }
  auto* tap = static_cast<PhaseTaps::Tap*>(memory);
  auto* phases = reinterpret_cast<PhaseTaps*>(static_cast<char*>(memory) + taps_bytes);
  for (int64_t i = 0; i < s.stride[0]; ++i) {
    const Phase down = phase(0, i);
    for (int64_t j = 0; j < 2; ++j) {
      const Phase across = phase(1, j);
      phases[2 * i + j] = {tap, down.taps * across.taps};
      for (int64_t t = 0; t < down.taps; ++t) {
        for (int64_t r = 0; r < across.taps; ++r) {
          const int64_t row = seen.padding[0] - down.padding + t * down.dilation;
          const int64_t column = seen.padding[1] - across.padding + r * across.dilation;
          const int64_t u = down.start + (down.taps - 1 - t) * down.step;
          const int64_t v = across.start + (across.taps - 1 - r) * across.step;
          *tap++ = {row * padded.row() + column, u * s.kernel[1] + v};
        }
      }
    }
  }
  const int64_t pad = padded.count(1), planes = s.batch * s.channels;
  const int64_t together = std::clamp<int64_t>(planes / (8 * host->thread_count()), 1, 32);
  return parallel_for_with_scratch(
      ctx, (planes + together - 1) / together,
      together * (s.taps() * s.results() + 2 * s.pixels()) / kWidth<T>,
      pad * static_cast<int64_t>(sizeof(T)), err, [&](int64_t item, void* own) {
        T* grads = static_cast<T*>(own);
        padded.clear(1, grads);
        for (int64_t p = item * together; p < std::min(planes, (item + 1) * together); ++p) {
          padded.fill(grad + p * s.results(), 1, grads);
          const T* weights = weight + p % s.channels * s.taps();
          for (int64_t y = 0; y < s.height; ++y) {
            const PhaseTaps* of_row = phases + y % s.stride[0] * 2;
            depthwise_phases_row(of_row[0], of_row[1], grads + y / s.stride[0] * padded.row(),
                                 weights, x + p * s.pixels() + y * s.width, s.width);
          }
        }
      });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
