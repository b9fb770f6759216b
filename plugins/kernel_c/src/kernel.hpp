// SPDX-License-Identifier: Apache-2.0
// What the host side of every kernel shares.
#pragma once

#include "device.hpp"
#include "dtypes.hpp"
#include "table.hpp"

#include <tenon/unbox.h>

#include <string_view>

namespace tenon::kernel_c {

#define TRY(expression) \
  if (tenon_status status_ = (expression); status_ != TENON_OK) return status_

// Refuses float64 and complex128 where the device's compiler has no float64.
inline tenon_status require_dtype(const Device& device, std::string_view op, int dtype,
                                  tenon_err* err) {
  if (real_dtype(dtype) != TENON_DTYPE_F64 || device.has(TENON_DTYPE_F64)) [[likely]]
    return TENON_OK;
  return fail(err, TENON_UNSUPPORTED,
              "[" + std::string(op) + "] expected a dtype that this device can compute in, got " +
                  (is_complex(dtype) ? "complex128, whose parts are float64; make it complex64 on "
                                       "the host, before it is moved here"
                                     : "float64; convert with .to(float32)"));
}

// A 0-d tensor counts as one with a single axis.
inline int normalize_axis(int64_t axis, int ndim) {
  return static_cast<int>(axis < 0 ? axis + (ndim > 1 ? ndim : 1) : axis);
}

}  // namespace tenon::kernel_c
