// SPDX-License-Identifier: Apache-2.0
// The extents of a described convolution.
#pragma once

#include "conv/packed_conv.hpp"
#include "conv/shapes.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

inline ConvShapes shapes_of(const ConvDescription& d) {
  ConvShapes s;
  s.batch = d.image[0];
  s.channels = d.image[1];
  s.height = d.image[2];
  s.width = d.image[3];
  s.filters = d.weight[0];
  s.rows = d.result[2];
  s.columns = d.result[3];
  s.groups = d.groups;
  for (int axis = 0; axis < 2; ++axis) {
    s.kernel[axis] = d.weight[2 + axis];
    s.stride[axis] = d.stride[axis];
    s.padding[axis] = d.padding[axis];
    s.dilation[axis] = d.dilation[axis];
  }
  return s;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
