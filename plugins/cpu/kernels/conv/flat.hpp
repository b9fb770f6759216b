// SPDX-License-Identifier: Apache-2.0
// Flat images: zero-padded images whose pixels form one row, pixel (y, x) of image n at index (n *
// rows + y) * columns + x. Each tap then reads the pixels of all results at a single offset, and
// the operand of the GEMM is a matrix in place. Between two rows, and two images, there are as many
// zeros as the taps need on one side: the zeros behind a row also precede the next one. A strided
// convolution has several such rows, one for each residue of the pixel index modulo the stride, and
// each serves the taps that read it.
#pragma once

#include "conv/shapes.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// One axis of the images. For result i, tap t reads pixel first(t) + stride * i; within part
// part(t) of the pixels its index is shift(t) + i.
struct FlatAxis {
  int64_t pixels, results, kernel, stride, padding, dilation;
  int64_t parts, reach, length;  // length: of a row of the part, zeros included.

  FlatAxis(const Window& s, int axis)
      : pixels(axis == 0 ? s.height : s.width),
        results(axis == 0 ? s.rows : s.columns),
        kernel(s.kernel[axis]),
        stride(s.stride[axis]),
        padding(s.padding[axis]),
        dilation(s.dilation[axis]),
        parts(std::min(kernel, stride / std::gcd(stride, dilation))),
        reach((kernel - 1) * dilation / stride),
        length(results) {
    for (int64_t p = 0; p < parts; ++p) {
      if (begin(p) < end(p)) length = std::max({length, end(p), results + reach - begin(p)});
    }
  }
  int64_t part(int64_t tap) const { return tap % (stride / std::gcd(stride, dilation)); }
  int64_t shift(int64_t tap) const { return tap * dilation / stride; }
  // The pixel at index i of a part.
  int64_t pixel(int64_t part, int64_t i) const {
    return i * stride + part * dilation % stride - padding;
  }
  // The pixels of a part that exist and are read.
  int64_t begin(int64_t part) const {
    return std::max<int64_t>(0, (stride - 1 - pixel(part, 0)) / stride);
  }
  int64_t end(int64_t part) const {
    const int64_t behind = pixels - pixel(part, 0);
    return behind <= 0 ? 0 : std::min((behind + stride - 1) / stride, results + reach);
  }
};

struct FlatImages {
  FlatAxis down, across;
  int64_t batch;

  explicit FlatImages(const ConvShapes& s) : down(s, 0), across(s, 1), batch(s.batch) {}

  int64_t parts() const { return down.parts * across.parts; }
  int64_t row() const { return across.length; }
  int64_t image() const { return down.length * across.length; }
  // Number of indices: all results and the gaps between them.
  int64_t count() const { return batch * image(); }
  // How far taps read beyond the index of a result.
  int64_t reach() const { return down.reach * across.length + across.reach; }
  int64_t part(int64_t u, int64_t v) const { return down.part(u) * across.parts + across.part(v); }
  int64_t shift(int64_t u, int64_t v) const { return down.shift(u) * row() + across.shift(v); }

  // The first index of a part that has a pixel, and the index behind the last one.
  struct Indices {
    int64_t first, last;
  };
  Indices indices(int64_t part) const {
    const int64_t of_rows = part / across.parts, of_columns = part % across.parts;
    return {down.begin(of_rows) * row() + across.begin(of_columns),
            (down.end(of_rows) - 1) * row() + across.end(of_columns)};
  }
  bool has_pixels(int64_t part) const {
    const int64_t of_rows = part / across.parts, of_columns = part % across.parts;
    return down.begin(of_rows) < down.end(of_rows) &&
           across.begin(of_columns) < across.end(of_columns);
  }
  // Calls f(at, y, x, n) for the pixels of a part that are read in rows [y, end) of an image: n
  // pixels of one row, starting at x and a stride apart, at consecutive indices from `at`.
  template <class F>
  void for_runs(int64_t part, int64_t y, int64_t end, F&& f) const {
    const int64_t of_rows = part / across.parts, of_columns = part % across.parts;
    const int64_t first = across.begin(of_columns), n = across.end(of_columns) - first;
    if (n <= 0) return;
    const auto number = [&](int64_t row) {  // Index of the first pixel that is not above this row.
      return std::max<int64_t>(0, (row - down.pixel(of_rows, 0) + down.stride - 1) / down.stride);
    };
    const int64_t last = std::min(down.end(of_rows), number(end));
    for (int64_t i = std::max(down.begin(of_rows), number(y)); i < last; ++i) {
      f(i * row() + first, down.pixel(of_rows, i), across.pixel(of_columns, first), n);
    }
  }
};

// True if the gaps between the results are larger than the results.
inline bool too_far_apart(const ConvShapes& s) {
  return FlatImages(s).count() > 2 * s.batch * s.results();
}

}  // namespace tenon::cpu::TENON_CPU_ISA
