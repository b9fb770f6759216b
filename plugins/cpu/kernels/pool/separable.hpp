// SPDX-License-Identifier: Apache-2.0
// SeparableReduction: pooling of NCHW images by an operation that may be applied in any order (max,
// sum). It first reduces the rows of each window into lines, in vectors along the image row, and
// then the columns of these lines.
#pragma once

#include "parallel_scratch.hpp"
#include "pool/vectors.hpp"
#include "pool/window.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
class SeparableReduction {
 public:
  SeparableReduction(const Window& w, int64_t planes) : w_(w), planes_(planes) {
    const bool covered = w.rows * w.stride[0] == w.height && w.columns * w.stride[1] == w.width;
    are_tiles_ = covered && w.padding[0] == 0 && w.padding[1] == 0 &&
                 (w.kernel[0] - 1) * w.dilation[0] < w.stride[0] &&
                 (w.kernel[1] - 1) * w.dilation[1] < w.stride[1];
    // Consecutive channels can be treated as one tall image.
    while (are_tiles_ && planes_ % 2 == 0 && planes_ >= 32 * host->thread_count() &&
           w_.height * w_.width * static_cast<int64_t>(sizeof(T)) < kBandBytes) {
      planes_ /= 2;
      w_.height *= 2;
      w_.rows *= 2;
    }
    const int64_t seen = (w.columns - 1) * w.stride[1] + (w.kernel[1] - 1) * w.dilation[1] + 1;
    line_ = are_tiles_ ? w.width : std::max(seen, w.padding[1] + w.width);
    rows_ = std::clamp<int64_t>(kBandBytes / (line_ * static_cast<int64_t>(sizeof(T))), 1, w_.rows);
  }

  // Whether windows cover the image without overlap: rows of results are then one contiguous run.
  bool are_tiles() const { return are_tiles_; }

  // out = finish(row, column, reduced) for vectors of windows from `column` of `row` on, where
  // `reduce` combines two vectors. `outside` is the value of the padding.
  template <class Reduce, class Finish>
  tenon_status run(tenon_ctx* ctx, const T* x, T outside, T* out, Reduce&& reduce, Finish&& finish,
                   tenon_err* err) const {
    const int64_t results = w_.rows * w_.columns, size = w_.height * w_.width;
    return parallel_for_with_scratch(
        ctx, planes_, (size + results) * (w_.kernel[0] + w_.kernel[1]) / kWindowWidth<T>,
        rows_ * line_ * static_cast<int64_t>(sizeof(T)), err, [&](int64_t plane, void* memory) {
          T* lines = static_cast<T*>(memory);
          if (!are_tiles_) std::fill_n(lines, rows_ * line_, outside);
          for (int64_t top = 0; top < w_.rows; top += rows_) {
            const int64_t rows = std::min(rows_, w_.rows - top);
            reduce_rows(x + plane * size, top, rows, outside, lines + w_.padding[1], reduce);
            T* to = out + plane * results + top * w_.columns;
            for (int64_t i = 0; i < (are_tiles_ ? 1 : rows); ++i) {
              reduce_columns(lines + i * line_, (are_tiles_ ? rows : 1) * w_.columns,
                             to + i * w_.columns, reduce,
                             [&](int64_t j, auto reduced) { return finish(top + i, j, reduced); });
            }
          }
        });
  }

 private:
  static constexpr int64_t kBandBytes = 12 * 1024;  // of lines: with what they are of, in cache

  // Reduces the rows of windows [top, top + rows) into lines.
  template <class Reduce>
  void reduce_rows(const T* plane, int64_t top, int64_t rows, T outside, T* lines,
                   Reduce&& reduce) const {
    const int64_t reach = (w_.kernel[0] - 1) * w_.dilation[0], stride = w_.stride[0];
    const Inside upper(-w_.padding[0], w_.height, stride, w_.rows);
    const Inside lower(reach - w_.padding[0], w_.height, stride, w_.rows);
    const int64_t begin = std::clamp<int64_t>(upper.begin - top, 0, rows);
    const int64_t end = std::clamp<int64_t>(lower.end - top, begin, rows);
    const auto some = [&](int64_t i, int64_t n) {
      const Span down(w_, 0, top + i);
      const T* from = plane + down.first * w_.width;
      T* to = lines + i * line_;
      switch (down.count) {
        case 0:
          return std::fill_n(to, w_.width, outside), void();
        case 2:
          return reduce_lines<2>(from, n, 2, to, reduce);
        case 3:
          return reduce_lines<3>(from, n, 3, to, reduce);
        default:
          return reduce_lines<0>(from, n, down.count, to, reduce);
      }
    };
    for (int64_t i = 0; i < begin; ++i) some(i, 1);
    // Windows inside the image need no check; where rows are short, many are processed per call.
    const int64_t together = w_.width <= 2 * kWindowWidth<T> ? end - begin : 1;
    for (int64_t i = begin; i < end; i += together) some(i, together);
    for (int64_t i = end; i < rows; ++i) some(i, 1);
  }

  // n rows of windows of `count` rows of pixels each; Count is that number if it is known at
  // compile time.
  template <int Count, class Reduce>
  void reduce_lines(const T* from, int64_t n, int64_t count, T* to, Reduce&& reduce) const {
    const int64_t step = w_.dilation[0] * w_.width, down = w_.stride[0] * w_.width;
    by_vectors<kWindowWidth<T>>(w_.width, [&]<int Width>(int64_t j) {
      using Vectors = WindowVec<T, Width>;
      const T* first = from + j;
      for (int64_t i = 0; i < n; ++i, first += down) {
        auto reduced = Vectors::load(first);
        for (int64_t u = 1; u < (Count ? Count : count); ++u) {
          reduced = reduce(reduced, Vectors::load(first + u * step));
        }
        Vectors::store(to + i * line_ + j, reduced);
      }
    });
  }

  template <class Reduce, class Finish>
  void reduce_columns(const T* line, int64_t n, T* out, Reduce&& reduce, Finish&& finish) const {
    const int64_t step = w_.dilation[1];
    const auto reduce_step = [&]<int Width, int Step>(int64_t j, const T* from) {
      using Vectors = WindowVec<T, Width>;
      auto reduced = Vectors::template load_every<Step>(from);
      for (int64_t v = 1; v < w_.kernel[1]; ++v) {
        reduced = reduce(reduced, Vectors::template load_every<Step>(from + v * step));
      }
      Vectors::store(out + j, finish(j, reduced));
    };
    if (w_.stride[1] == 1) {
      by_vectors<kWindowWidth<T>>(
          n, [&]<int Width>(int64_t j) { reduce_step.template operator()<Width, 1>(j, line + j); });
    } else if (w_.stride[1] == 2) {
      by_vectors<kWindowWidth<T>>(n, [&]<int Width>(int64_t j) {
        reduce_step.template operator()<Width, 2>(j, line + 2 * j);
      });
    } else {
      for (int64_t j = 0; j < n; ++j) {
        reduce_step.template operator()<1, 1>(j, line + j * w_.stride[1]);
      }
    }
  }

  Window w_;
  int64_t planes_, line_, rows_;  // line_: elements of a line, with padding; rows_: lines together
  bool are_tiles_;
};

template <class T>
tenon_status max_pool_nchw(tenon_ctx* ctx, const Window& w, int64_t planes, const T* x, T* values,
                           tenon_err* err) {
  return SeparableReduction<T>(w, planes).run(
      ctx, x, lowest<T>(), values, [](auto a, auto b) { return max_or_nan(a, b); },
      [](int64_t, int64_t, auto maximum) { return maximum; }, err);
}

template <class T>
tenon_status average_pool_nchw(tenon_ctx* ctx, const Window& w, int64_t planes, const T* x,
                               bool count_padding, T* out, tenon_err* err) {
  const SeparableReduction<T> reduction(w, planes);
  const auto add = [](auto a, auto b) { return a + b; };
  if (reduction.are_tiles()) {
    const T inverse_count = T(1) / static_cast<T>(w.kernel[0] * w.kernel[1]);
    return reduction.run(
        ctx, x, T(0), out, add, [&](int64_t, int64_t, auto sum) { return sum * inverse_count; },
        err);
  }
  // The reciprocal of the number of counted elements, by the number of counted rows.
  void* memory = nullptr;
  const auto bytes = static_cast<uint64_t>((w.kernel[0] + 1) * w.columns) * sizeof(T);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) {
    return status;
  }
  T* inverse_counts = static_cast<T*>(memory);
  for (int64_t rows = 0; rows <= w.kernel[0]; ++rows) {
    for (int64_t j = 0; j < w.columns; ++j) {
      const int64_t count = rows * counted(w, 1, j, count_padding);
      inverse_counts[rows * w.columns + j] = T(1) / static_cast<T>(std::max<int64_t>(1, count));
    }
  }
  return reduction.run(
      ctx, x, T(0), out, add,
      [&](int64_t i, int64_t j, auto sum) {
        constexpr int width = sizeof sum / sizeof(T);
        return sum * WindowVec<T, width>::load(inverse_counts +
                                               counted(w, 0, i, count_padding) * w.columns + j);
      },
      err);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
