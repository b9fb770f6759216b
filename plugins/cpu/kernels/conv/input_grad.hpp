// SPDX-License-Identifier: Apache-2.0
// Input gradients of convolutions. They are convolutions themselves: a single one or, with a
// stride, one for each phase of the pixels.
#pragma once

#include "conv/depthwise_phases.hpp"
#include "conv/forward.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
tenon_status run_forward_of(tenon_ctx* ctx, const ConvShapes& s, const Images& x, const T* weight,
                            T* out, tenon_err* err) {
  return run_forward<T>(ctx, s, x, weight, nullptr, out, err);
}
#ifdef __AVX512F__
template <>
inline tenon_status run_forward_of(tenon_ctx* ctx, const ConvShapes& s, const Images& x,
                                   const BFloat16* weight, BFloat16* out, tenon_err* err) {
  if (suits_amx(s)) return run_conv_amx(ctx, ConvPhases(s), x, weight, false, nullptr, out, err);
  return run_forward_bfloat16(ctx, s, static_cast<const BFloat16*>(x.data), weight, nullptr, out,
                              err);
}
#endif

// The weights of a phase as filters of channels: [group, channel, filter of the group, tap, tap].
template <class T>
void transpose_weight(const ConvShapes& s, const Phase& down, const Phase& across, const T* weight,
                      T* to) {
  // The channels of a filter are adjacent: this many are read while their cache lines are present.
  constexpr int64_t some = 16;
  const int64_t taps = down.taps * across.taps, filters = s.group_filters();
  parallel((s.channels + some - 1) / some, some * filters * taps, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t channels = std::min(some, s.channels - i * some);
      const T* first[some];
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t g = (i * some + c) / s.group_channels();
        first[c] = weight + (g * (filters - 1) * s.group_channels() + i * some + c) * s.taps();
      }
      for (int64_t f = 0; f < filters; ++f) {
        for (int64_t c = 0; c < channels; ++c) {
          const T* from = first[c] + f * s.depth();
          T* row = to + ((i * some + c) * filters + f) * taps;
          if (taps == 9 && s.taps() == 9) {  // All taps of the most common kernel.
#pragma GCC unroll 9
            for (int t = 0; t < 9; ++t) row[t] = from[8 - t];
            continue;
          }
          for (int64_t t = down.taps - 1; t >= 0; --t) {
            for (int64_t r = across.taps - 1; r >= 0; --r) {
              *row++ =
                  from[(down.start + t * down.step) * s.kernel[1] + across.start + r * across.step];
            }
          }
        }
      }
    }
  });
}

// Without a stride all pixels belong to one phase.
inline Phase whole_down(const ConvShapes& s) {
  return Phase(0, s.height, s.kernel[0], 1, s.padding[0], s.dilation[0]);
}
inline Phase whole_across(const ConvShapes& s) {
  return Phase(0, s.width, s.kernel[1], 1, s.padding[1], s.dilation[1]);
}
inline ConvShapes whole_transposed(const ConvShapes& s) {
  return transposed_shapes(s, whole_down(s), whole_across(s));
}

// True if AMX computes the input gradient, all phases together.
inline bool suits_transposed_amx(const ConvShapes& s) {
  if (!has_transposed_phases(s) || s.stride[1] > 2) return false;
  const ConvPhases phases = transposed_phases(s);
  return phases.count == phases.transposes() && suits_amx(phases.frame);
}

// Depthwise with stride 1 and one filter for each channel; `x` has the dtype of `grad`.
template <class T>
tenon_status run_depthwise_input_grad(tenon_ctx* ctx, const ConvShapes& s, const Images& grad,
                                      const T* weight, void* x, tenon_err* err) {
  const auto bytes = static_cast<uint64_t>(s.filters * s.taps()) * sizeof(T);
  void* transposed = nullptr;
  if (const tenon_status status = host->scratch(ctx, bytes, &transposed, err); status != TENON_OK) {
    return status;
  }
  transpose_weight(s, whole_down(s), whole_across(s), weight, static_cast<T*>(transposed));
  return run_forward_depthwise<T>(ctx, whole_transposed(s), grad, static_cast<const T*>(transposed),
                                  nullptr, nullptr, x, err);
}

// Interleaves one row of the pixels of all phases across columns; a phase that no tap reads is null
// and becomes zeros.
template <class T, int Stride>
void index_row(const T* const* phases, int64_t width, int64_t stride, T* to) {
  if constexpr (Stride == 2) {
    const int64_t whole = width / 2;
    if (phases[0] && phases[1]) {
      for (int64_t b = 0; b < whole; ++b) to[2 * b] = phases[0][b], to[2 * b + 1] = phases[1][b];
      if (width % 2) to[width - 1] = phases[0][whole];
      return;
    }
    if (phases[0] && !phases[1]) {
      for (int64_t b = 0; b < whole; ++b) to[2 * b] = phases[0][b], to[2 * b + 1] = T(0);
      if (width % 2) to[width - 1] = phases[0][whole];
      return;
    }
  }
  std::fill_n(to, width, T(0));
  for (int64_t j = 0; j < stride; ++j) {
    for (int64_t b = 0; phases[j] && j + b * stride < width; ++b) to[j + b * stride] = phases[j][b];
  }
}

// The phases of an input gradient across columns, for the rows of one phase.
template <class T>
class RowPhases {
 public:
  RowPhases(const ConvShapes& s, T* parts) : s_(s), parts_(parts) {}

  // Elements of one phase.
  static int64_t count(const ConvShapes& s) {
    return s.batch * s.channels * ((s.height + s.stride[0] - 1) / s.stride[0]) *
           ((s.width + s.stride[1] - 1) / s.stride[1]);
  }
  Phase across(int64_t j) const {
    return Phase(j, s_.width, s_.kernel[1], s_.stride[1], s_.padding[1], s_.dilation[1]);
  }
  T* part(int64_t j) const { return parts_ + j * count(s_); }

  // Stores all phases to x.
  tenon_status index(tenon_ctx* ctx, int64_t first_row, const Phase& down, T* x,
                     tenon_err* err) const {
    const int64_t stride = s_.stride[1];
    return parallel_for_with_scratch(
        ctx, s_.batch * s_.channels, down.pixels * s_.width,
        stride * static_cast<int64_t>(sizeof(T*)), err, [&](int64_t plane, void* memory) {
          const T** phases = static_cast<const T**>(memory);
          for (int64_t j = 0; j < stride; ++j) {
            const bool seen = down.taps > 0 && across(j).taps > 0;
            phases[j] = seen ? part(j) + plane * down.pixels * columns(j) : nullptr;
          }
          for (int64_t a = 0; a < down.pixels; ++a) {
            T* to = x + plane * s_.pixels() + (first_row + a * s_.stride[0]) * s_.width;
            stride == 2 ? index_row<T, 2>(phases, s_.width, stride, to)
                        : index_row<T, 0>(phases, s_.width, stride, to);
            for (int64_t j = 0; j < stride; ++j) {
              if (phases[j]) phases[j] += columns(j);
            }
          }
        });
  }

 private:
  int64_t columns(int64_t j) const { return (s_.width - j + s_.stride[1] - 1) / s_.stride[1]; }

  const ConvShapes& s_;
  T* parts_;
};

// True if nChw16c blocks compute all phases of the pixels together.
inline bool suits_block_phases(const ConvShapes& s) {
  return has_transposed_phases(s) && !s.is_depthwise() && s.group_channels() >= 16 &&
         s.group_filters() * s.taps() >= 16;
}

// A stride divides the pixels into phases that read different taps, and each is a convolution of
// stride 1. The gradients are NCHW unless the transposed shapes suit nChw16c blocks; results have
// the same layout.
template <class T>
tenon_status run_input_grad(tenon_ctx* ctx, const ConvShapes& s, const Images& grad,
                            const T* weight, T* x, tenon_err* err) {
  const bool whole = s.stride[0] == 1 && s.stride[1] == 1;
  if constexpr (std::is_floating_point_v<T>) {
    if (suits_depthwise_phases(s) && grad.pixel == 1 && s.results() > 0) {
      return run_depthwise_phases<T>(ctx, s, static_cast<const T*>(grad.data), weight, x, err);
    }
    const ConvShapes turn = whole_transposed(s);
    if (whole && suits_winograd(turn)) {
      bool finite = false;
      const auto run = grad.pixel == 1 ? run_winograd<T> : run_winograd_last<T>;
      const tenon_status status =
          run(ctx, turn, static_cast<const T*>(grad.data), weight, true, nullptr, x, &finite, err);
      if (status != TENON_OK || finite) return status;
    }
  }
  void *transposed = nullptr, *parts = nullptr;
  const auto weights = static_cast<uint64_t>(s.filters * s.depth());
  tenon_status status = host->scratch(ctx, weights * sizeof(T), &transposed, err);
  if (status == TENON_OK && !whole && !(std::is_floating_point_v<T> && suits_block_phases(s))) {
    const auto numel = static_cast<uint64_t>(RowPhases<T>::count(s) * s.stride[1]);
    status = host->scratch(ctx, numel * sizeof(T), &parts, err);
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (!whole && status == TENON_OK && suits_block_phases(s)) {
      const ConvPhases all = transposed_phases(s);
      for (int64_t p = 0; p < all.count; ++p) {
        const auto& [first, before] = std::pair(all.parts[p].first, all.parts[p].taps_before);
        transpose_weight(
            s, Phase(first[0], s.height, s.kernel[0], s.stride[0], s.padding[0], s.dilation[0]),
            Phase(first[1], s.width, s.kernel[1], s.stride[1], s.padding[1], s.dilation[1]), weight,
            static_cast<T*>(transposed) + before * s.filters * s.group_channels());
      }
      return run_blocks<T>(ctx, all, grad, static_cast<const T*>(transposed), nullptr, x, err);
    }
  }
  const RowPhases<T> phases(s, static_cast<T*>(parts));
  for (int64_t i = 0; i < s.stride[0]; ++i) {
    const Phase down(i, s.height, s.kernel[0], s.stride[0], s.padding[0], s.dilation[0]);
    for (int64_t j = 0; j < s.stride[1] && status == TENON_OK; ++j) {
      const Phase across = phases.across(j);
      if (down.pixels == 0 || across.pixels == 0 || down.taps == 0 || across.taps == 0) continue;
      const ConvShapes turn = transposed_shapes(s, down, across);
      transpose_weight(s, down, across, weight, static_cast<T*>(transposed));
      status = run_forward_of<T>(ctx, turn, grad, static_cast<T*>(transposed),
                                 whole ? x : phases.part(j), err);
    }
    if (status == TENON_OK && !whole) status = phases.index(ctx, i, down, x, err);
  }
  return status;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
