// SPDX-License-Identifier: Apache-2.0
// Iteration over tensors of any strides: axes are ordered and merged, multi-dimensional indices are
// converted to offsets, and rows are copied between strides.
#pragma once

#include "dtypes.hpp"

#include <tenon/abi.h>

#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {

inline constexpr int kMaxOperands = 8;

// The axes of an iteration over several tensors, innermost last. Strides are in bytes.
struct Axes {
  int count = 0;
  int operands = 0;
  int64_t extent[TENON_MAX_NDIM];
  int64_t stride[TENON_MAX_NDIM][kMaxOperands];

  // Append one axis; extents of 1 vanish.
  void push(int64_t length, const int64_t* strides);
  // order_by() puts axes with large strides of `operand` outside; merge() joins neighbouring axes
  // that all operands step through uniformly.
  void order_by(int operand);
  void merge();
  // Whether the elements of `operand`, of `size` bytes, are contiguous in the order of the
  // iteration.
  bool is_contiguous(int operand, int64_t size) const;
  bool is_constant(int operand) const;
  int64_t inner_extent() const { return count > 0 ? extent[count - 1] : 1; }
  int64_t inner_stride(int operand) const { return count > 0 ? stride[count - 1][operand] : 0; }
};

// Axes over `out`, to which `inputs` are broadcast. Operands: the inputs, then out.
Axes broadcast_axes(const tenon_tensor* const* inputs, int count, const tenon_tensor* out);

// A position of the iteration: one index per axis.
struct StridedIterator {
  int64_t index[TENON_MAX_NDIM];

  // The `linear`-th element in row-major order.
  StridedIterator(const Axes& axes, int64_t linear);
  int64_t offset(const Axes& axes, int operand) const;
  // Advances by `n` along an axis, and carries into the next outer axis at its end. `n` must not
  // reach beyond that end.
  void advance(const Axes& axes, int64_t n, int axis);
  void advance(const Axes& axes, int64_t n) { advance(axes, n, axes.count - 1); }
  int64_t left_in_row(const Axes& axes) const {
    return axes.count > 0 ? axes.extent[axes.count - 1] - index[axes.count - 1] : 1;
  }
};

// n elements of `size` bytes between two strides.
void copy_row(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n,
              int size);

}  // namespace tenon::cpu::TENON_CPU_ISA
