// SPDX-License-Identifier: Apache-2.0
// The extents of a convolution.
#pragma once

#include "window.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

struct ConvShapes : Window {
  int64_t batch, channels, filters, groups;
  int64_t group_channels() const { return channels / groups; }
  int64_t group_filters() const { return filters / groups; }
  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t depth() const { return group_channels() * taps(); }
  int64_t pixels() const { return height * width; }
  int64_t results() const { return rows * columns; }
  // The image already is the matrix that it would be unrolled into.
  bool is_pointwise() const {
    return taps() == 1 && stride[0] == 1 && stride[1] == 1 && padding[0] == 0 && padding[1] == 0;
  }
};

// A channel of a pointwise convolution as a single row: longer runs.
inline ConvShapes flattened(ConvShapes s) {
  if (s.is_pointwise()) {
    s.width = s.columns = s.pixels();
    s.height = s.rows = 1;
  }
  return s;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
