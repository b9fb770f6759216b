// SPDX-License-Identifier: Apache-2.0
// Two devices and a few operators that exist for tests of the core alone: "fakehost", whose memory
// is the host's, and "remote", whose memory is reached by copies.
#pragma once

#include <tenon/abi.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/dispatch/call.hpp"
#include "kernel_core/dispatch/registry.hpp"

namespace fake {

// Registers everything once for the process; later calls do nothing.
void install();

tenon_device_id host_device();
tenon_device_id remote_device();

// What the fake kernels saw.
extern int add_calls, copy_calls, cast_calls;
extern bool kernels_fail;

// An owned float32 tensor with these values.
tenon::core::TensorRef tensor(std::initializer_list<int64_t> shape,
                              std::initializer_list<float> values,
                              tenon_device_id device = host_device());
// Its values in row-major order, whatever its strides and device.
std::vector<float> values(tenon_tensor* tensor);

inline tenon_value value(const tenon::core::TensorRef& tensor) {
  return tenon::boxed(tensor.get());
}
inline tenon_value number(double x) { return tenon::boxed(x); }
inline tenon_value number(int x) { return tenon::boxed(x); }

// Calls an operator with one result; the error text comes out in `text`.
struct Result {
  tenon_status status;
  tenon::core::TensorRef tensor;
  std::string text;
};
Result call(const char* op, std::vector<tenon_value> args, tenon_tensor* out = nullptr);

}  // namespace fake
