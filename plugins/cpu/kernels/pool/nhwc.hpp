// SPDX-License-Identifier: Apache-2.0
// NhwcWindows: pooling of NHWC images. Loop order: images, rows of windows, windows, vectors of
// channels, taps.
#pragma once

#include "parallel_scratch.hpp"
#include "pool/vectors.hpp"
#include "pool/window.hpp"

#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
class NhwcWindows {
 public:
  NhwcWindows(const Window& w, int64_t images, int64_t channels)
      : w_(w), images_(images), channels_(channels) {}

  template <class Owner>
  tenon_status maximum(Owner* owner, const T* x, T* values, tenon_err* err) const {
    const auto reduce = [&](const Taps& taps, int64_t, int64_t, const T* first, int64_t, T* to,
                            int64_t*) {
      by_vectors<kWindowWidth<T>>(channels_, [&]<int Width>(int64_t c) {
        using Vectors = WindowVec<T, Width>;
        auto maximum =
            taps.count > 0 ? Vectors::load(first + c) : lowest<T>() - typename Vectors::Values{};
        for (int64_t t = 1; t < taps.count; ++t) {
          maximum = max_or_nan(maximum, Vectors::load(first + taps.elements[t] + c));
        }
        Vectors::store(to + c, maximum);
      });
    };
    return run(owner, x, values, nullptr, err, reduce);
  }

  tenon_status maximum(tenon_ctx* ctx, const T* x, T* values, int64_t* indices,
                       tenon_err* err) const {
    using Index = typename WindowVec<T, 1>::Index;
    const auto reduce = [&](const Taps& taps, int64_t, int64_t, const T* first, int64_t index,
                            T* to, int64_t* index_out) {
      by_vectors<kWindowWidth<T>>(channels_, [&]<int Width>(int64_t c) {
        using Vectors = WindowVec<T, Width>;
        typename Vectors::ArgmaxVec maximum{lowest<T>() - typename Vectors::Values{},
                                            typename Vectors::Indices{}};
        if (taps.count > 0) {
          maximum = {Vectors::load(first + c),
                     static_cast<Index>(index) - typename Vectors::Indices{}};
        }
        for (int64_t t = 1; t < taps.count; ++t) {
          maximum.update(Vectors::load(first + taps.elements[t] + c),
                         static_cast<Index>(index + taps.pixels[t]) - typename Vectors::Indices{});
        }
        maximum.store(to + c, index_out + c);
      });
    };
    return run(ctx, x, values, indices, err, reduce);
  }

  tenon_status average(tenon_ctx* ctx, const T* x, bool count_padding, T* out,
                       tenon_err* err) const {
    const auto reduce = [&](const Taps& taps, int64_t i, int64_t j, const T* first, int64_t, T* to,
                            int64_t*) {
      const int64_t count = counted(w_, 0, i, count_padding) * counted(w_, 1, j, count_padding);
      const T inverse_count = T(1) / static_cast<T>(std::max<int64_t>(1, count));
      by_vectors<kWindowWidth<T>>(channels_, [&]<int Width>(int64_t c) {
        using Vectors = WindowVec<T, Width>;
        typename Vectors::Values sum = {};
        for (int64_t t = 0; t < taps.count; ++t) sum += Vectors::load(first + taps.elements[t] + c);
        Vectors::store(to + c, sum * inverse_count);
      });
    };
    return run(ctx, x, out, nullptr, err, reduce);
  }

  // The gradient of a pixel is the sum, over the windows that contain it, of their gradient divided
  // by their count.
  tenon_status average_grad(tenon_ctx* ctx, const T* grad, bool count_padding, T* out,
                            tenon_err* err) const {
    const int64_t row = w_.width * channels_;
    return parallel_for_with_scratch(
        ctx, images_ * w_.height, row / kWindowWidth<T> * 8,
        (w_.rows + w_.columns) * static_cast<int64_t>(sizeof(int64_t)), err,
        [&](int64_t item, void* memory) {
          auto *rows = static_cast<int64_t*>(memory), *columns = rows + w_.rows;
          const Windows down = windows_of(0, item % w_.height);
          for (int64_t i = down.begin; i < down.end; ++i)
            rows[i] = counted(w_, 0, i, count_padding);
          for (int64_t j = 0; j < w_.columns; ++j) columns[j] = counted(w_, 1, j, count_padding);
          const T* image = grad + item / w_.height * w_.rows * w_.columns * channels_;
          for (int64_t x = 0; x < w_.width; ++x) {
            const Windows across = windows_of(1, x);
            T* to = out + item * row + x * channels_;
            by_vectors<kWindowWidth<T>>(channels_, [&]<int Width>(int64_t c) {
              using Vectors = WindowVec<T, Width>;
              typename Vectors::Values sum = {};
              for (int64_t i = down.begin; i < down.end; ++i) {
                for (int64_t j = across.begin; j < across.end; ++j) {
                  const T inverse_count =
                      T(1) / static_cast<T>(std::max<int64_t>(1, rows[i] * columns[j]));
                  sum +=
                      Vectors::load(image + (i * w_.columns + j) * channels_ + c) * inverse_count;
                }
              }
              Vectors::store(to + c, sum);
            });
          }
        });
  }

 private:
  // The windows that contain a pixel, along one axis, without dilation.
  struct Windows {
    int64_t begin, end;
  };
  Windows windows_of(int axis, int64_t pixel) const {
    const int64_t at = pixel + w_.padding[axis];
    const int64_t begin = at < w_.kernel[axis] ? 0 : (at - w_.kernel[axis]) / w_.stride[axis] + 1;
    return {begin, std::min(axis == 0 ? w_.rows : w_.columns, at / w_.stride[axis] + 1)};
  }

  // The elements of one window, relative to its first: in pixels and in elements.
  struct Taps {
    int64_t *pixels, *elements;
    int64_t rows = 0, columns = 0, count = 0;

    void update(const Window& w, int64_t channels, const Span& down, const Span& across) {
      if (down.count == rows && across.count == columns) return;  // but for the edges all are alike
      rows = down.count;
      columns = across.count;
      count = rows * columns;
      for (int64_t t = 0; t < count; ++t) {
        pixels[t] = t / columns * w.dilation[0] * w.width + t % columns * w.dilation[1];
        elements[t] = pixels[t] * channels;
      }
    }
  };

  // fold(taps, i, j, first, place, values, indices): window (i, j), whose first element of channel
  // 0 is `first` and the pixel `place` of its image, for all channels.
  template <class Owner, class Reduce>
  tenon_status run(Owner* owner, const T* x, T* values, int64_t* indices, tenon_err* err,
                   Reduce&& reduce) const {
    const int64_t taps_size = w_.kernel[0] * w_.kernel[1];
    return parallel_for_with_scratch(
        owner, images_ * w_.rows, w_.columns * channels_ * taps_size / kWindowWidth<T> * 2,
        2 * taps_size * static_cast<int64_t>(sizeof(int64_t)), err,
        [&](int64_t item, void* memory) {
          Taps taps{static_cast<int64_t*>(memory), static_cast<int64_t*>(memory) + taps_size};
          const int64_t i = item % w_.rows;
          const T* image = x + item / w_.rows * w_.height * w_.width * channels_;
          const Span down(w_, 0, i);
          int64_t at = item * w_.columns * channels_;
          for (int64_t j = 0; j < w_.columns; ++j, at += channels_) {
            const Span across(w_, 1, j);
            taps.update(w_, channels_, down, across);
            const int64_t index = down.first * w_.width + across.first;
            reduce(taps, i, j, image + index * channels_, index, values + at, indices + at);
          }
        });
  }

  const Window w_;
  int64_t images_, channels_;
};

}  // namespace tenon::cpu::TENON_CPU_ISA
