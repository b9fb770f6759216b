// SPDX-License-Identifier: Apache-2.0
// The extents of a convolution, and of the convolutions that its gradient is made of.
#pragma once

#include "window.hpp"

#include <numeric>

namespace tenon::cpu::TENON_CPU_ISA {

struct ConvShapes : Window {
  int64_t batch, channels, filters, groups;
  int64_t group_channels() const { return channels / groups; }
  int64_t group_filters() const { return filters / groups; }
  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t depth() const { return group_channels() * taps(); }
  int64_t pixels() const { return height * width; }
  int64_t results() const { return rows * columns; }
  // Every filter sees one channel.
  bool is_depthwise() const { return groups > 1 && channels == groups; }
  // The image already is the matrix that it would be unrolled into.
  bool is_pointwise() const { return sees_single_pixels() && stride[0] == 1 && stride[1] == 1; }
  // Some of its pixels are.
  bool is_strided_pointwise() const { return sees_single_pixels() && !is_pointwise(); }
  bool sees_single_pixels() const { return taps() == 1 && padding[0] == 0 && padding[1] == 0; }
};

// The pointwise convolution over the pixels that a strided one sees.
inline ConvShapes without_stride(ConvShapes s) {
  s.height = s.rows, s.width = s.columns;
  s.stride[0] = s.stride[1] = 1;
  return s;
}

// A channel of a pointwise convolution as a single row: longer runs.
inline ConvShapes flattened(ConvShapes s) {
  if (s.is_pointwise()) {
    s.width = s.columns = s.pixels();
    s.height = s.rows = 1;
  }
  return s;
}

// One axis of an input's gradient: the pixels y = first + stride * a see the taps start + step * t,
// and are a convolution of the results' gradient with those taps in reverse.
struct Phase {
  int64_t start, step, taps, pixels, padding, dilation;

  Phase(int64_t first, int64_t extent, int64_t kernel, int64_t stride, int64_t padding_of,
        int64_t dilation_of) {
    const int64_t common = std::gcd(stride, dilation_of);
    step = stride / common, dilation = dilation_of / common;
    pixels = extent > first ? (extent - first + stride - 1) / stride : 0;
    start = 0;
    while (start < step && (first + padding_of - start * dilation_of) % stride != 0) ++start;
    taps = start < step && start < kernel ? (kernel - start + step - 1) / step : 0;
    padding = (taps - 1) * dilation - (first + padding_of - start * dilation_of) / stride;
  }
};

}  // namespace tenon::cpu::TENON_CPU_ISA
