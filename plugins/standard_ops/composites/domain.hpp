// SPDX-License-Identifier: Apache-2.0
// Values that an operator has no meaning for. Composites check them here, with one text, where the
// host can read a tensor at once. On other devices a check would make the call wait for the device;
// there the result is what the operator's documentation says, or unspecified.
//
// A recording keeps the calls that a composite makes, and would lose the check. There these functions
// call an operator that checks in each run (opdefs/checks.yaml) and put its result, which has the same
// elements, in the place of the tensor: what is computed from it comes after the check.
#pragma once

#include "composites/compose.hpp"

namespace tenon::standard_ops {

// An error, TENON_TYPE_MISMATCH, unless the dtype of `x`, the parameter `name`, is one of integers; bool is not.
tenon_status expect_integers(const char* op, const char* name, const Tensor& x, tenon_err* err);

// An error with `code`, TENON_INVALID_ARGUMENT or TENON_OUT_OF_RANGE, unless every element of `x` is in
// [low, high]: "expected `what` from 0 to 1, got 2". NaN is not.
tenon_status expect_between(tenon_status code, const char* op, const char* what, Tensor& x,
                            double low, double high, tenon_err* err);

// Weights of multinomial are proportional to probabilities: finite, not negative, and in each row at least
// `needed` of them above zero.
tenon_status expect_weights(Tensor& weights, int64_t needed, tenon_err* err);

// A 0 in the dtype and on the device of `x`, without axes: what where() puts in the place of other elements.
inline Tensor zero_of(Scope& scope, const Tensor& x) { return full_with(scope, x, Shape(), 0); }

}  // namespace tenon::standard_ops
