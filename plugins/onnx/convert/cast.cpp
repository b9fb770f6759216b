// SPDX-License-Identifier: Apache-2.0
// Cast and CastLike. Beyond float8 lies the largest number where `saturate` is set; integers of floats that they do not hold are
// unspecified, as ONNX leaves them.
#include <cstring>
#include <limits>

#include "convert/converters.hpp"
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

Tensor cast_to(Conversion& c, const Tensor& from, int32_t dtype) {
  if (from->dtype == dtype) return from;
  if (dtype == TENON_DTYPE_F8E8M0 && c.text("round_mode") != "nearest")
    c.refuse("expected round_mode \"nearest\" for FLOAT8E8M0, got \"" + c.text("round_mode") +
             "\"");
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

Values convert_cast(Conversion& c) {
  const Value to = c.attribute("to");
  const std::string* name = to.get<std::string>();
  const int64_t type = name ? element_type_named(c, *name) : int_of(to, "to");
  return {cast_to(c, c.tensor("input"), dtype_of(type, "attribute `to`"))};
}

Values convert_cast_like(Conversion& c) {
  return {cast_to(c, c.tensor("input"), c.tensor("target_type")->dtype)};
}

}  // namespace tenon::onnx
