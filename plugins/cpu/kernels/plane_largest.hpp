// SPDX-License-Identifier: Apache-2.0
// Where the largest elements of windows over planes lie, and the gradient that goes there.
#pragma once

#include "plane_windows.hpp"

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
  const auto fold = [&]<int Step, int Count>(const auto& taps, const auto& rows, const void* memory,
                                             T*) {
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

// The gradients of some rows of windows to the pixels at `places`, counted from the corner of each
// window; a negative one is not known. On its own, or its numbers would not stay in registers.
template <class T, class Place>
[[gnu::noinline]] void scatter_rows(const Window& w, int64_t first, int64_t count,
                                    const Place* places, const T* grad, const T* x, T* to) {
  const int64_t columns = w.columns, step = w.stride[1];
  for (int64_t i = first; i < first + count; ++i, places += columns, grad += columns) {
    int64_t corner = (i * w.stride[0] - w.padding[0]) * w.width - w.padding[1];
    for (int64_t j = 0; j < columns; ++j, corner += step) {
      int64_t place = corner + places[j];
      if (places[j] < 0) [[unlikely]] {  // a NaN equals nothing
        T value;
        max_window(w, Span(w, 0, i), Span(w, 1, j), x, &value, &place);
      }
      to[place] += grad[j];
    }
  }
}

// Every window's gradient, added to that of its largest element: the first that equals it.
template <class T>
tenon_status largest_grad_of_planes(tenon_ctx* ctx, const PlaneWindows<T>& windows, const T* grad,
                                    const T* x, const T* largest, T* out, tenon_err* err) {
  const Window& w = windows.window();
  using Place = typename WindowVectors<T, 1>::Place;
  const int64_t results = w.rows * w.columns, size = w.height * w.width;
  const auto fold = [&]<int Step, int Count>(const auto& taps, const auto& rows, const void*,
                                             T* own) {
    static_assert(sizeof(Place) == sizeof(T));
    auto* places = reinterpret_cast<Place*>(own);
    by_vectors<kWindowLanes<T>>(w.columns, [&]<int Lanes>(int64_t j) {
      using Vectors = WindowVectors<T, Lanes>;
      for (int64_t i = 0; i < rows.count; ++i) {
        const T* from = rows.pixels + i * rows.down + j * Step;
        const auto value = Vectors::load(largest + rows.result + i * w.columns + j);
        typename Vectors::Places place = Place(-1) - typename Vectors::Places{};
        PlaneWindows<T>::template for_taps<Count>(taps, [&](int64_t t) {
          const int64_t before = taps.count - 1 - t;  // the first of all is the last to be seen
          const auto at = static_cast<Place>(taps.pixels[before]) - typename Vectors::Places{};
          place =
              Vectors::template load_every<Step>(from + taps.offsets[before]) == value ? at : place;
        });
        std::memcpy(places + i * w.columns + j, &place, sizeof place);
      }
    });
    const int64_t plane = rows.result / results;
    T* to = out + plane * size;
    if (rows.first == 0) std::fill_n(to, size, T(0));
    scatter_rows(w, rows.first, rows.count, places, grad + rows.result, x + plane * size, to);
  };
  // Nothing equals what fills the padding.
  const T outside = std::numeric_limits<T>::quiet_NaN();
  return windows.run(
      ctx, x, outside, [](void*) {}, fold, err);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
