// SPDX-License-Identifier: Apache-2.0
// A Python number as a 0-d tensor on the stack: no storage, no count, alive during one call.
#pragma once

#include <tenon/abi.h>
#include <tenon/integer_range.hpp>

#include "kernel_core/runtime/device.hpp"
#include "kernel_core/types/dtype.hpp"

namespace tenon::core {

struct HostScalar {
  tenon_tensor view;
  alignas(16) unsigned char bytes[16];

  // `value` is INT, BOOL, FLOAT or COMPLEX; converted to `dtype` with C's rules.
  void set(const tenon_value& value, int32_t dtype, const Device& device);
};

// Class of a number that a caller passed for a tensor parameter.
inline DtypeClass scalar_class(int32_t tag) {
  switch (tag) {
    case TENON_VALUE_BOOL:
      return DtypeClass::kBool;
    case TENON_VALUE_INT:
      return DtypeClass::kSigned;
    case TENON_VALUE_COMPLEX:
      return DtypeClass::kComplex;
    default:
      return DtypeClass::kFloating;
  }
}
inline bool is_scalar_tag(int32_t tag) {
  return (tag >= TENON_VALUE_INT && tag <= TENON_VALUE_FLOAT) || tag == TENON_VALUE_COMPLEX;
}

// Write `value` as one element of `dtype` to `out` (up to 16 bytes).
void write_scalar(const tenon_value& value, int32_t dtype, void* out);

}  // namespace tenon::core
