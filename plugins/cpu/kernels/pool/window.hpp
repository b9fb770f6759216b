// SPDX-License-Identifier: Apache-2.0
// Windows that slide over the height and width of an image: convolution and pooling.
#pragma once

#include "simd/isa.hpp"

#include <tenon/abi.h>

#include <algorithm>
#include <cstdint>

namespace tenon::cpu::TENON_CPU_ISA {

struct Window {
  int64_t height, width;  // of the image
  int64_t rows, columns;  // of the result
  int64_t kernel[2], stride[2], padding[2], dilation[2];
};

// An int[] parameter of two numbers, of which one may stand for both.
inline void read_pair(const int64_t* list, uint64_t count, int64_t otherwise, int64_t* pair) {
  pair[0] = count > 0 && list ? list[0] : otherwise;
  pair[1] = count > 1 && list ? list[1] : pair[0];
}

// The elements of window i along one axis that lie inside the image: first, first + dilation, ...,
// < end.
struct Span {
  int64_t first, end, count;
  Span(const Window& w, int axis, int64_t i) {
    const int64_t length = axis == 0 ? w.height : w.width, dilation = w.dilation[axis];
    first = i * w.stride[axis] - w.padding[axis];
    end = std::min(first + (w.kernel[axis] - 1) * dilation + 1, length);
    if (first < 0) first += (-first + dilation - 1) / dilation * dilation;
    count = first < end ? (end - first + dilation - 1) / dilation : 0;
  }
};

// The number of elements that an average over window i divides by, along one axis: those inside the
// image, or with its padding as well.
inline int64_t counted(const Window& w, int axis, int64_t i, bool count_padding) {
  const int64_t length = axis == 0 ? w.height : w.width;
  const int64_t first = i * w.stride[axis] - w.padding[axis], end = first + w.kernel[axis];
  if (count_padding) return std::min(end, length + w.padding[axis]) - first;
  return std::max<int64_t>(0, std::min(end, length) - std::max<int64_t>(0, first));
}

// The results i in [0, count) whose element `offset` (from the padded edge) lies inside [0,
// length): those from `begin` to `end`.
struct Inside {
  int64_t begin, end;
  Inside(int64_t offset, int64_t length, int64_t stride, int64_t count) {
    begin = offset >= 0 ? 0 : std::min(count, (-offset + stride - 1) / stride);
    end = offset >= length ? 0 : std::min(count, (length - offset + stride - 1) / stride);
    end = std::max(begin, end);
  }
};

}  // namespace tenon::cpu::TENON_CPU_ISA
