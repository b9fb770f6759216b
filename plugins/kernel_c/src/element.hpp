// SPDX-License-Identifier: Apache-2.0
// A number as an element in memory, for launch arguments of the type of a tensor's elements.
#pragma once

#include <tenon/abi.h>

namespace tenon::kernel_c {

// 16 bytes at most; the dtype says how many.
struct Element {
  alignas(16) unsigned char bytes[16] = {};
};
Element element_of(const tenon_value& value, int dtype);
// The number in a 0-d host scalar, of whatever dtype.
Element element_of(const tenon_tensor* host_scalar, int dtype);

}  // namespace tenon::kernel_c
