// SPDX-License-Identifier: Apache-2.0
// Windows over images whose channels lie side by side, a vector of channels at a time. The results
// of some rows of windows are put side by side in the same way, and then turned into planes.
#pragma once

#include "parallel_memory.hpp"
#include "transpose.hpp"
#include "window.hpp"
#include "window_vectors.hpp"

#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
class ChannelWindows {
 public:
  ChannelWindows(const Window& w, int64_t images, int64_t channels)
      : w_(w), images_(images), channels_(channels), step_((channels + 15) / 16 * 16 + 16) {}

  tenon_status largest(tenon_ctx* ctx, const T* x, T* values, tenon_err* err) const {
    const auto fold = [&](const Taps& taps, int64_t, int64_t, const T* first, int64_t, T* to,
                          int64_t*) {
      by_vectors<kWindowLanes<T>>(channels_, [&]<int Lanes>(int64_t c) {
        using Vectors = WindowVectors<T, Lanes>;
        auto largest =
            taps.count > 0 ? Vectors::load(first + c) : lowest<T>() - typename Vectors::Values{};
        for (int64_t t = 1; t < taps.count; ++t) {
          largest = larger(largest, Vectors::load(first + taps.elements[t] + c));
        }
        Vectors::store(to + c, largest);
      });
    };
    return run(ctx, x, values, nullptr, err, fold);
  }

  tenon_status largest(tenon_ctx* ctx, const T* x, T* values, int64_t* indices,
                       tenon_err* err) const {
    using Place = typename WindowVectors<T, 1>::Place;
    const auto fold = [&](const Taps& taps, int64_t, int64_t, const T* first, int64_t place, T* to,
                          int64_t* places) {
      by_vectors<kWindowLanes<T>>(channels_, [&]<int Lanes>(int64_t c) {
        using Vectors = WindowVectors<T, Lanes>;
        typename Vectors::Largest largest{lowest<T>() - typename Vectors::Values{},
                                          typename Vectors::Places{}};
        if (taps.count > 0) {
          largest = {Vectors::load(first + c),
                     static_cast<Place>(place) - typename Vectors::Places{}};
        }
        for (int64_t t = 1; t < taps.count; ++t) {
          largest.see(Vectors::load(first + taps.elements[t] + c),
                      static_cast<Place>(place + taps.pixels[t]) - typename Vectors::Places{});
        }
        largest.store(to + c, places + c);
      });
    };
    return run(ctx, x, values, indices, err, fold);
  }

  tenon_status average(tenon_ctx* ctx, const T* x, bool count_padding, T* out,
                       tenon_err* err) const {
    const auto fold = [&](const Taps& taps, int64_t i, int64_t j, const T* first, int64_t, T* to,
                          int64_t*) {
      const int64_t count = counted(w_, 0, i, count_padding) * counted(w_, 1, j, count_padding);
      const T share = T(1) / static_cast<T>(std::max<int64_t>(1, count));
      by_vectors<kWindowLanes<T>>(channels_, [&]<int Lanes>(int64_t c) {
        using Vectors = WindowVectors<T, Lanes>;
        typename Vectors::Values sum = {};
        for (int64_t t = 0; t < taps.count; ++t) sum += Vectors::load(first + taps.elements[t] + c);
        Vectors::store(to + c, sum * share);
      });
    };
    return run(ctx, x, out, nullptr, err, fold);
  }

 private:
  // What one window sees, counted from its first element: in pixels and in elements.
  struct Taps {
    int64_t *pixels, *elements;
    int64_t rows = 0, columns = 0, count = 0;

    void see(const Window& w, int64_t channels, const Span& down, const Span& across) {
      if (down.count == rows && across.count == columns) return;  // but for the edges all are alike
      rows = down.count, columns = across.count, count = rows * columns;
      for (int64_t t = 0; t < count; ++t) {
        pixels[t] = t / columns * w.dilation[0] * w.width + t % columns * w.dilation[1];
        elements[t] = pixels[t] * channels;
      }
    }
  };

  // Results of a band from side by side to planes.
  template <class R>
  void turn(const R* from, int64_t n, R* to) const {
    constexpr int64_t some = 16, bytes = sizeof(R);
    const int64_t plane = w_.rows * w_.columns;
    for (int64_t c = 0; c < channels_; c += some) {
      transpose_bytes(bytes, reinterpret_cast<const char*>(from + c), step_ * bytes,
                      reinterpret_cast<char*>(to + c * plane), plane * bytes, n,
                      std::min(some, channels_ - c));
    }
  }

  // fold(taps, i, j, first, place, values, indices): window (i, j), whose first element of channel
  // 0 is `first` and the pixel `place` of its image, for all channels.
  template <class Fold>
  tenon_status run(tenon_ctx* ctx, const T* x, T* values, int64_t* indices, tenon_err* err,
                   Fold&& fold) const {
    // The results of a band lie in the second-level cache until they are turned.
    constexpr int64_t most_bytes = 256 * 1024;
    const int64_t result = (sizeof(T) + (indices ? sizeof(int64_t) : 0)) * step_;
    const int64_t rows = std::clamp<int64_t>(most_bytes / (w_.columns * result), 1, w_.rows);
    const int64_t bands = (w_.rows + rows - 1) / rows, results = rows * w_.columns;
    const int64_t taps_size = w_.kernel[0] * w_.kernel[1];
    const int64_t of_taps = (2 * taps_size * sizeof(int64_t) + 63) & ~int64_t{63};
    return parallel_with_memory(
        ctx, images_ * bands, results * channels_ * taps_size / kWindowLanes<T> * 2,
        of_taps + results * result, err, [&](int64_t item, void* memory) {
          Taps taps{static_cast<int64_t*>(memory), static_cast<int64_t*>(memory) + taps_size};
          auto* own_indices = reinterpret_cast<int64_t*>(static_cast<char*>(memory) + of_taps);
          T* own_values = reinterpret_cast<T*>(own_indices + (indices ? results * step_ : 0));
          const int64_t n = item / bands, top = item % bands * rows;
          const int64_t end = std::min(top + rows, w_.rows);
          const T* image = x + n * w_.height * w_.width * channels_;
          for (int64_t i = top, at = 0; i < end; ++i) {
            const Span down(w_, 0, i);
            for (int64_t j = 0; j < w_.columns; ++j, at += step_) {
              const Span across(w_, 1, j);
              taps.see(w_, channels_, down, across);
              const int64_t place = down.first * w_.width + across.first;
              fold(taps, i, j, image + place * channels_, place, own_values + at, own_indices + at);
            }
          }
          const int64_t first = (n * channels_ * w_.rows + top) * w_.columns;
          turn(own_values, (end - top) * w_.columns, values + first);
          if (indices) turn(own_indices, (end - top) * w_.columns, indices + first);
        });
  }

  const Window w_;
  int64_t images_, channels_, step_;  // step_: from one result to the next; not a power of two
};

}  // namespace tenon::cpu::TENON_CPU_ISA
