// SPDX-License-Identifier: Apache-2.0
// Dtypes of arguments of operators whose results depend on data: no shape rule runs before their kernels, which others
// leave that check to.
#pragma once

#include <tenon/ops/shapes.hpp>

namespace tenon::cpu {

// `expected` describes `mask`, bits of dtypes.
inline tenon_status expect_dtype(const char* op, const char* name, const tenon_tensor* tensor,
                                 uint64_t mask, const char* expected, tenon_err* err) {
  if (shapes::bit(tensor->dtype) & mask) return TENON_OK;
  return static_cast<tenon_status>(shapes::fail(
      err, TENON_TYPE_MISMATCH, op, "expected %s of dtype %s, got %s; convert it with cast()", name,
      expected, host->dtype_name(tensor->dtype)));
}

}  // namespace tenon::cpu
