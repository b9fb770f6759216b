// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the stand-ins for cuDNN and MIOpen: cross-correlation of NCHW images, one element at a time.
#pragma once

#include <cstdint>

namespace simulated {

// cudnnDataType_t
enum DnnType : int { kDnnFloat = 0, kDnnDouble = 1, kDnnHalf = 2, kDnnBfloat16 = 9 };

uint64_t dnn_type_bytes(int type);  // 0: not computed here

enum class Pass { kForward, kBackwardData, kBackwardFilter };

struct DnnConvolution {
  Pass pass;
  int type;
  int groups;
  int x[4], w[4], y[4];
  int padding[2], stride[2], dilation[2];
  // Device addresses; which one is written depends on the pass.
  const void *x_data, *w_data, *y_data;
  uint64_t microseconds;  // before the arithmetic
};

uint64_t elements_of(const int (&shape)[4]);

// `at` translates an address of the device. What was freed meanwhile is left alone; a device would fault.
void run_convolution(const DnnConvolution&, void* (*at)(const void*, uint64_t));

// y[n, c, h, w] += bias[c]
struct DnnBias {
  int type;
  int y[4];
  const void *bias_data, *y_data;
};
void run_bias(const DnnBias&, void* (*at)(const void*, uint64_t));

}  // namespace simulated
