// SPDX-License-Identifier: Apache-2.0
// Element types of less than a byte. Their values are those of int8, uint8 and float8_e4m3, which carry them; the importer knows
// which tensor is of which type.
#pragma once

#include "conversion.hpp"

namespace tenon::onnx {

struct Narrow {
  uint32_t bits;
  double low, high;
  bool is_integer;
};

// nullptr: the element type has whole bytes.
const Narrow* find_narrow(int32_t element_type);
// `x` as the carrier of a narrow type: integers keep their low bits, floats are rounded to the nearest and saturate.
Tensor to_narrow(Conversion& c, const Tensor& x, int32_t element_type);

}  // namespace tenon::onnx
