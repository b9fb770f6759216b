// SPDX-License-Identifier: Apache-2.0
// Values that an operator has no meaning for. Composites check them here, with one text, where the
// host can read a tensor at once. On other devices a check would make the call wait for the device;
// there the result is what the operator's documentation says, or unspecified.
#pragma once

#include <functional>

#include "composites/compose.hpp"

namespace tenon::standard_ops {

// An error with `code` unless every element of `x` is in [low, high]: "expected `what` from 0 to 1,
// got 2". NaN is not.
tenon_status expect_between(tenon_status code, const char* op, const char* what, const Tensor& x,
                            double low, double high, tenon_err* err);

// The rows of `x` along its last axis as doubles, one after the other, until `visit` fails; none if
// the host cannot read `x`.
tenon_status for_each_row(const Tensor& x, tenon_err* err,
                          const std::function<tenon_status(std::span<const double>)>& visit);

}  // namespace tenon::standard_ops
