// SPDX-License-Identifier: Apache-2.0
// Operators of any number of tensors, which broadcast: Max, Min, Sum, Mean.
#include "convert/converters.hpp"

namespace tenon::onnx {
namespace {

Tensor fold(Conversion& c, const char* op) {
  if (c.inputs().empty()) c.fail("expected one input at least, got none");
  Tensor result = c.inputs()[0].tensor("input 0");
  for (size_t i = 1; i < c.inputs().size(); ++i)
    result = c.call(op, {result, c.inputs()[i].tensor("input " + std::to_string(i))});
  return result;
}

}  // namespace

Values convert_maximum(Conversion& c) { return {fold(c, "maximum")}; }
Values convert_minimum(Conversion& c) { return {fold(c, "minimum")}; }
Values convert_sum(Conversion& c) { return {fold(c, "add")}; }

Values convert_mean(Conversion& c) {
  const auto count = static_cast<double>(c.inputs().size());
  return {c.call("divide", {fold(c, "add"), count})};
}

}  // namespace tenon::onnx
