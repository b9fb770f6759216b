// SPDX-License-Identifier: Apache-2.0
// Windows that slide over the height and width of images: convolution and pooling.
#pragma once

#include "isa.hpp"

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

// The results i in [0, count) whose element `offset` (from the padded edge) lies inside [0, length):
// those from `begin` to `end`.
struct Inside {
  int64_t begin, end;
  Inside(int64_t offset, int64_t length, int64_t stride, int64_t count) {
    begin = offset >= 0 ? 0 : std::min(count, (-offset + stride - 1) / stride);
    end = offset >= length ? 0 : std::min(count, (length - offset + stride - 1) / stride);
    end = std::max(begin, end);
  }
};

}  // namespace tenon::cpu::TENON_CPU_ISA
