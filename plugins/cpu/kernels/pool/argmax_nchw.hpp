// SPDX-License-Identifier: Apache-2.0
// Where the largest elements of windows over planes lie.
#pragma once

#include "pool/nchw.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// One window, wherever it lies.
template <class T>
void max_window(const Window& w, const Span& down, const Span& across, const T* x, T* value,
                int64_t* index) {
  if (down.count == 0 || across.count == 0) {  // nothing but padding
    *value = lowest<T>();
    *index = 0;
    return;
  }
  int64_t place = down.first * w.width + across.first;
  T best = x[place];
  for (int64_t y = down.first; y < down.end; y += w.dilation[0]) {
    const T* row = x + y * w.width;
    for (int64_t z = across.first; z < across.end; z += w.dilation[1]) {
      const bool leads = !(row[z] <= best) & (best == best);
      best = leads ? row[z] : best;
      place = leads ? y * w.width + z : place;
    }
  }
  *value = best;
  *index = place;
}

// Every window has to see a pixel.
template <class T>
tenon_status largest_of_planes(tenon_ctx* ctx, const PlaneWindows<T>& windows, const T* x,
                               T* values, int64_t* indices, tenon_err* err) {
  const Window& w = windows.window();
  using Place = typename WindowVectors<T, 1>::Place;
  // The first pixel inside the image that each column of windows sees.
  const auto prepare = [&](void* memory) {
    for (int64_t j = 0; j < w.columns; ++j) {
      static_cast<Place*>(memory)[j] = static_cast<Place>(Span(w, 1, j).first);
    }
  };
  const auto fold = [&]<int Step, int Count>(const auto& taps, const auto& rows,
                                             const void* memory) {
    by_vectors<kWindowLanes<T>>(w.columns, [&]<int Lanes>(int64_t j) {
      using Vectors = WindowVectors<T, Lanes>;
      using Places = typename Vectors::Places;
      const Places first = Vectors::load_places(static_cast<const Place*>(memory) + j);
      const int64_t left = j * w.stride[1] - w.padding[1];
      const Places across = Vectors::counted() * static_cast<Place>(w.stride[1]);
      for (int64_t i = 0; i < rows.count; ++i) {
        const T* from = rows.pixels + i * rows.down + j * Step;
        const int64_t top = (rows.first + i) * w.stride[0] - w.padding[0];
        const auto seen = static_cast<Place>(Span(w, 0, rows.first + i).first * w.width);
        const Places at = across + static_cast<Place>(top * w.width + left);
        typename Vectors::Largest largest{lowest<T>() - typename Vectors::Values{}, first + seen};
        PlaneWindows<T>::template for_taps<Count>(taps, [&](int64_t t) {
          largest.see(Vectors::template load_every<Step>(from + taps.offsets[t]),
                      at + static_cast<Place>(taps.pixels[t]));
        });
        const int64_t to = rows.result + i * w.columns + j;
        largest.store(values + to, indices + to);
      }
    });
  };
  return windows.run(ctx, x, lowest<T>(), prepare, fold, err);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
