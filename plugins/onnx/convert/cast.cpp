// SPDX-License-Identifier: Apache-2.0
// Cast and CastLike. Beyond float8 lies the largest number where `saturate` is set; integers of floats that they do not hold are
// unspecified, as ONNX leaves them.
#include <cmath>

#include "convert/converters.hpp"
#include "convert/narrow.hpp"
#include "convert/text.hpp"
#include "importer.hpp"
#include "reader/reader.hpp"
#include "tensors.hpp"

namespace tenon::onnx {
namespace {

// The largest number of a float8 dtype; 0 for others.
double float8_limit(int32_t dtype) {
  switch (dtype) {
    case TENON_DTYPE_F8E4M3:
      return 448;
    case TENON_DTYPE_F8E4M3FNUZ:
      return 240;
    case TENON_DTYPE_F8E5M2:
    case TENON_DTYPE_F8E5M2FNUZ:
      return 57344;
    default:
      return 0;
  }
}

bool has_arithmetic(int32_t dtype) { return dtype <= TENON_DTYPE_C128; }

// A power of two: the nearest, or the next one in a direction.
Tensor to_power(Conversion& c, const Tensor& from, const std::string& mode) {
  const double least = std::ldexp(1.0, -127), most = std::ldexp(1.0, 127);
  Tensor x = c.cast(from, TENON_DTYPE_F32);
  // There is no 0: the least number stands for it.
  x = c.call("where", {c.call("equal", {x, 0.0}), least, x});
  const Tensor power = c.cast(c.cast(x, TENON_DTYPE_F8E8M0), TENON_DTYPE_F32);
  if (mode != "up" && mode != "down")
    c.fail("attribute `round_mode`: expected up, down or nearest, got `" + mode + "`");
  const bool is_up = mode == "up";
  const Tensor is_beyond = c.call(is_up ? "less" : "greater", {power, x}),
               other =
                   c.call("clip", {c.call("multiply", {power, is_up ? 2.0 : 0.5}), least, most});
  return c.cast(c.call("where", {is_beyond, other, power}), TENON_DTYPE_F8E8M0);
}

Tensor cast_to(Conversion& c, const Tensor& from, int32_t element_type) {
  const int32_t dtype = dtype_of(element_type, "attribute `to`");
  if (c.importer.element_type(from) == element_type) return from;
  if (find_narrow(element_type)) return to_narrow(c, from, element_type);
  // The carrier of a narrow type has the numbers; it is another tensor, of a type with whole bytes.
  if (from->dtype == dtype)
    return find_narrow(c.importer.element_type(from)) ? c.call("clone", {from}) : from;
  if (dtype == TENON_DTYPE_F8E8M0 && has_arithmetic(from->dtype) &&
      c.text("round_mode") != "nearest")
    return to_power(c, from, c.text("round_mode"));
  const double limit = float8_limit(dtype);
  if (limit == 0 || c.integer("saturate", 1) == 0 || !has_arithmetic(from->dtype) ||
      from->dtype < TENON_DTYPE_F16)
    return c.cast(from, dtype);
  const Tensor limited = c.call("clip", {c.cast(from, TENON_DTYPE_F32), -limit, limit});
  return c.cast(limited, dtype);
}

// Before opset 6 `to` is a name.
int64_t element_type_named(Conversion& c, const std::string& name) {
  for (int32_t type = 1; type <= 26; ++type)
    if (name == element_type_name(type)) return type;
  c.fail("attribute `to`: expected the name of an element type, got `" + name + "`");
}

}  // namespace

namespace {

Values cast_value(Conversion& c, int32_t element_type) {
  const bool is_text = element_type == static_cast<int32_t>(ElementType::String);
  const Value input = c.input("input");
  if (const Text* text = input.get<Text>()) {
    if (is_text) return {*text};
    if (find_narrow(element_type)) c.refuse("text as an element type of less than a byte");
    return {cast_from_text(c, *text, dtype_of(element_type, "attribute `to`"))};
  }
  if (is_text) return {cast_to_text(c, c.tensor("input"))};
  return {cast_to(c, c.tensor("input"), element_type)};
}

}  // namespace

Values convert_cast(Conversion& c) {
  const Value to = c.attribute("to");
  const std::string* name = to.get<std::string>();
  const int64_t type = name ? element_type_named(c, *name) : int_of(to, "to");
  return cast_value(c, static_cast<int32_t>(type));
}

Values convert_cast_like(Conversion& c) {
  const bool is_text = c.input("target_type").get<Text>() != nullptr;
  return cast_value(c, is_text ? static_cast<int32_t>(ElementType::String)
                               : c.importer.element_type(c.tensor("target_type")));
}

}  // namespace tenon::onnx
