// SPDX-License-Identifier: Apache-2.0
#include "convert/narrow.hpp"

#include "importer.hpp"
#include "tensors.hpp"

namespace tenon::onnx {
namespace {

constexpr std::pair<ElementType, Narrow> kTypes[] = {
    {ElementType::UInt4, {4, 0, 15, true}},       {ElementType::Int4, {4, -8, 7, true}},
    {ElementType::UInt2, {2, 0, 3, true}},        {ElementType::Int2, {2, -2, 1, true}},
    {ElementType::Float4E2M1, {4, -6, 6, false}},
};

Tensor with_number(Conversion& c, const char* op, const Tensor& x, const Value& number) {
  return c.call(op, {x, number});
}

// Steps of 0.5 below 2, of 1 below 4, of 2 up to 6; NaN is 0.
Tensor to_float4(Conversion& c, const Tensor& x) {
  Tensor number = c.cast(x, TENON_DTYPE_F32);
  number = c.call("where", {c.call("isnan", {number}), 0.0, number});
  number = c.call("clip", {number, -6.0, 6.0});
  const Tensor size = c.call("abs", {number});
  const Tensor coarse = c.call("where", {with_number(c, "less", size, 4.0), 1.0, 2.0});
  const Tensor step =
      c.call("where", {with_number(c, "less", size, 2.0), 0.5, c.cast(coarse, TENON_DTYPE_F32)});
  const Tensor ratio = c.call("divide", {number, c.cast(step, TENON_DTYPE_F32)});
  return c.cast(c.call("multiply", {c.call("round", {ratio}), c.cast(step, TENON_DTYPE_F32)}),
                TENON_DTYPE_F8E4M3);
}

}  // namespace

const Narrow* find_narrow(int32_t element_type) {
  for (const auto& [type, narrow] : kTypes)
    if (static_cast<int32_t>(type) == element_type) return &narrow;
  return nullptr;
}

Tensor to_narrow(Conversion& c, const Tensor& x, int32_t element_type) {
  const Narrow& narrow = *find_narrow(element_type);
  Tensor made;
  if (!narrow.is_integer) {
    made = to_float4(c, x);
  } else {
    const int64_t mask = (int64_t{1} << narrow.bits) - 1, sign = int64_t{1} << (narrow.bits - 1);
    const Tensor wide = c.cast(c.cast(x, TENON_DTYPE_I64), TENON_DTYPE_I32);
    made = with_number(c, "bitwise_and", wide, mask);
    if (narrow.low < 0)
      made = with_number(c, "subtract", with_number(c, "bitwise_xor", made, sign), sign);
    made = c.cast(made, find_dtype(element_type));
  }
  c.importer.set_element_type(made, element_type);
  return made;
}

}  // namespace tenon::onnx
