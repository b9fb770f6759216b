// SPDX-License-Identifier: Apache-2.0
// What a measurement depends on: operator, device, dtypes, shapes, strides, attributes and threads.
#pragma once

#include <tenon/abi.h>

#include <string>

namespace tenon::autotune {

// Two calls of an operator on one device with equal hashes are treated as one. A collision costs
// time at most: whether a kernel accepts a call is decided for every call.
struct CallHash {
  uint64_t dtypes = 0;  // of the operator, the device and the dtypes of the tensors
  uint64_t call = 0;    // of everything
  tenon_device_id device = TENON_DEVICE_NONE;
  uint8_t dtype = 0;  // of the first tensor
};

// The device of a call is that of its first tensor; a call without tensors has none.
CallHash hash_call(const tenon_op* op, const tenon_value* args, uint32_t nargs,
                   const tenon_value* outs, uint32_t nouts);

// The same for a file: "conv2d | float32[8,64,56,56] float32[64,64,3,3] none [1,1] 1 | 2 threads".
std::string describe_call(const tenon_op* op, const tenon_value* args, uint32_t nargs,
                          const tenon_value* outs, uint32_t nouts);

}  // namespace tenon::autotune
