// SPDX-License-Identifier: Apache-2.0
// Elements of any dtype, as numbers.
#pragma once

#include <optional>

#include "host_bytes.hpp"

namespace tenon::validation {

// Index and text of the first element that is NaN or infinite; nothing for dtypes that have
// neither.
struct Element {
  int64_t index;
  std::string text;
};
std::optional<Element> find_nonfinite(tenon_tensor* tensor);

// Where two tensors of equal shape and dtype first differ by more than atol + rtol * |expected|.
// Negative tolerances: what suits the dtype.
std::optional<Element> find_difference(tenon_tensor* got, tenon_tensor* expected, double rtol,
                                       double atol);

}  // namespace tenon::validation
