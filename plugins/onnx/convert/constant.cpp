// SPDX-License-Identifier: Apache-2.0
// Constant, ConstantOfShape, Range.
#include <cmath>

#include "convert/converters.hpp"
#include "importer.hpp"
#include "text/texts.hpp"

namespace tenon::onnx {
namespace {

// A tensor of this element alone.
Tensor filled(Conversion& c, const Ints& shape, const Tensor& element) {
  if (element->numel != 1)
    c.fail("attribute `value`: expected one element, got " + describe(*element.get()));
  for (int64_t size : shape)
    if (size < 0) c.fail("expected sizes of at least 0, got " + std::to_string(size));
  return c.call("full", {shape, element, {"dtype", Dtype{element->dtype}}});
}

}  // namespace

Values convert_constant(Conversion& c) {
  int given = 0;
  Value result;
  for (const FormalAttribute& formal : c.schema.attributes) {
    if (!c.has_attribute(formal.name)) continue;
    ++given;
    const Value value = c.attribute(formal.name);
    if (formal.name == "value")
      result = value;
    else if (formal.name == "value_int")
      result = known_int(int_of(value, formal.name));
    else if (formal.name == "value_ints")
      result = known_ints(ints_of(value, formal.name));
    else if (formal.name == "value_float")
      result = c.call("reshape", {known_floats({float_of(value, formal.name)}), Ints{}});
    else if (formal.name == "value_floats")
      result = known_floats(floats_of(value, formal.name));
    else if (formal.name == "value_string")
      result = make_text({*value.get<std::string>()}, {});
    else if (formal.name == "value_strings")
      result = make_text(*value.get<Texts>(), {static_cast<int64_t>(value.get<Texts>()->size())});
    else
      c.refuse("attribute `" + formal.name + "`: expected a dense tensor");
  }
  if (given != 1) c.fail("expected one attribute that holds a value, got " + std::to_string(given));
  return {result};
}

Values convert_constant_of_shape(Conversion& c) {
  const Ints shape = ints_of(c.input("input"), "input");
  const Value value = c.attribute("value");
  if (value.is_none()) return {c.call("full", {shape, 0.0, {"dtype", Dtype{TENON_DTYPE_F32}}})};
  return {filled(c, shape, value.tensor("value"))};
}

Values convert_range(Conversion& c) {
  const Tensor& start = c.tensor("start");
  const Dtype dtype{start->dtype};
  // Numbers beyond what a list may hold would be made before a shape is checked.
  constexpr double kMaxCount = 1 << 28;
  const double first = float_of(start, "start"), limit = float_of(c.input("limit"), "limit"),
               delta = float_of(c.input("delta"), "delta");
  if (delta == 0 || !(std::ceil((limit - first) / delta) <= kMaxCount))
    c.fail("expected a delta other than 0, and at most 2^28 numbers");
  const auto number = [&](std::string_view name) -> Value {
    if (start->dtype <= TENON_DTYPE_I64) return int_of(c.input(name), std::string(name));
    return float_of(c.input(name), std::string(name));
  };
  return {c.call("arange", {number("start"), number("limit"), number("delta"), {"dtype", dtype}})};
}

}  // namespace tenon::onnx
