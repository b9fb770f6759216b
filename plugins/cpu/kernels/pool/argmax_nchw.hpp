// SPDX-License-Identifier: Apache-2.0
// max_pool2d_with_indices of NCHW images: the maximum of each window and its index.
#pragma once

#include "pool/nchw.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// The maximum of one window, with all checks.
template <class T>
void max_window(const Window& w, const Span& down, const Span& across, const T* x, T* value,
                int64_t* index) {
  if (down.count == 0 || across.count == 0) {  // nothing but padding
    *value = lowest<T>();
    *index = 0;
    return;
  }
  int64_t best_index = down.first * w.width + across.first;
  T best = x[best_index];
  for (int64_t y = down.first; y < down.end; y += w.dilation[0]) {
    const T* row = x + y * w.width;
    for (int64_t z = across.first; z < across.end; z += w.dilation[1]) {
      const bool leads = !(row[z] <= best) & (best == best);
      best = leads ? row[z] : best;
      best_index = leads ? y * w.width + z : best_index;
    }
  }
  *value = best;
  *index = best_index;
}

// Requires that every window contains a pixel.
template <class T>
tenon_status max_pool_nchw(tenon_ctx* ctx, const NchwWindows<T>& windows, const T* x, T* values,
                           int64_t* indices, tenon_err* err) {
  const Window& w = windows.window();
  using Index = typename WindowVec<T, 1>::Index;
  // The first pixel inside the image of each column of windows.
  const auto prepare = [&](void* memory) {
    for (int64_t j = 0; j < w.columns; ++j) {
      static_cast<Index*>(memory)[j] = static_cast<Index>(Span(w, 1, j).first);
    }
  };
  const auto reduce = [&]<int Step, int Count>(const auto& taps, const auto& rows,
                                               const void* memory) {
    by_vectors<kWindowWidth<T>>(w.columns, [&]<int Width>(int64_t j) {
      using Vectors = WindowVec<T, Width>;
      using Indices = typename Vectors::Indices;
      const Indices first = Vectors::load_indices(static_cast<const Index*>(memory) + j);
      const int64_t left = j * w.stride[1] - w.padding[1];
      const Indices across = Vectors::iota() * static_cast<Index>(w.stride[1]);
      for (int64_t i = 0; i < rows.count; ++i) {
        const T* from = rows.pixels + i * rows.down + j * Step;
        const int64_t top = (rows.first + i) * w.stride[0] - w.padding[0];
        const auto seen = static_cast<Index>(Span(w, 0, rows.first + i).first * w.width);
        const Indices at = across + static_cast<Index>(top * w.width + left);
        typename Vectors::ArgmaxVec maximum{lowest<T>() - typename Vectors::Values{}, first + seen};
        NchwWindows<T>::template for_taps<Count>(taps, [&](int64_t t) {
          maximum.update(Vectors::template load_every<Step>(from + taps.offsets[t]),
                         at + static_cast<Index>(taps.pixels[t]));
        });
        const int64_t to = rows.result + i * w.columns + j;
        maximum.store(values + to, indices + to);
      }
    });
  };
  return windows.run(ctx, x, lowest<T>(), prepare, reduce, err);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
