// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear, and products of quantised numbers, as the formulas of ONNX say.
#include "convert/converters.hpp"
#include "convert/narrow.hpp"
#include "convert/window.hpp"
#include "importer.hpp"

namespace tenon::onnx {
namespace {

bool is_float8(int32_t dtype) {
  return dtype == TENON_DTYPE_F8E4M3 || dtype == TENON_DTYPE_F8E5M2 ||
         dtype == TENON_DTYPE_F8E4M3FNUZ || dtype == TENON_DTYPE_F8E5M2FNUZ;
}

// `parameter`, one number, one for each element of `axis`, or one for each block along it, as it multiplies x.
Tensor along(Conversion& c, const Tensor& parameter, const Tensor& x) {
  const int64_t block = c.integer("block_size");
  if (parameter->numel == 1 && parameter->ndim <= 1) return c.call("reshape", {parameter, Ints{}});
  const int64_t axis = normal_axis(c.integer("axis", 1), x->ndim, "axis");
  if (parameter->ndim == 1 && block == 0) {
    if (parameter->numel != x->shape[axis])
      c.fail("expected a scale for each of the " + std::to_string(x->shape[axis]) +
             " elements of axis " + std::to_string(axis) + ", got " + describe(*parameter.get()));
    Ints shape(static_cast<size_t>(x->ndim), 1);
    shape[static_cast<size_t>(axis)] = parameter->numel;
    return c.call("reshape", {parameter, shape});
  }
  if (block < 1 || parameter->ndim != x->ndim)
    c.fail("expected a scale that is a number, a vector or of blocks, got " +
           describe(*parameter.get()));
  const Tensor wide = c.call("repeat", {parameter, block, axis});
  // The last block may be cut off.
  const Tensor cut = c.call("narrow", {wide, axis, 0, x->shape[axis]});
  if (shape_of(cut) != shape_of(x))
    c.fail("expected a scale for each block, got " + describe(*parameter.get()));
  return cut;
}

struct Bounds {
  double low, high;
};

Bounds bounds_of(Conversion& c, int32_t dtype, int32_t element_type) {
  if (const Narrow* narrow = find_narrow(element_type)) return {narrow->low, narrow->high};
  switch (dtype) {
    case TENON_DTYPE_U8:
      return {0, 255};
    case TENON_DTYPE_I8:
      return {-128, 127};
    case TENON_DTYPE_U16:
      return {0, 65535};
    case TENON_DTYPE_I16:
      return {-32768, 32767};
    default:
      c.refuse(std::string("quantised numbers of ") + host->dtype_name(dtype));
  }
}

// Rounded, moved and kept within the dtype; `x` is float32 or float64.
Tensor quantised(Conversion& c, const Tensor& ratio, const Value& zero_point, int32_t dtype,
                 int32_t element_type = 0) {
  const Bounds bounds = bounds_of(c, dtype, element_type);
  Tensor moved = c.call("round", {ratio});
  if (!zero_point.is_none())
    moved = c.call("add", {moved, c.cast(zero_point.tensor("zero point"), ratio->dtype)});
  return c.cast(c.call("clip", {moved, bounds.low, bounds.high}), dtype);
}

// x - zero point as int32.
Tensor centred(Conversion& c, const Tensor& x, const Value& zero_point, const Ints& shape) {
  const Tensor wide = c.cast(x, TENON_DTYPE_I32);
  if (zero_point.is_none()) return wide;
  Tensor point = c.cast(zero_point.tensor("zero point"), TENON_DTYPE_I32);
  if (point->numel == 1)
    point = c.call("reshape", {point, Ints{}});
  else if (!shape.empty() && point->ndim == 1)
    point = c.call("reshape", {point, shape});
  return c.call("subtract", {wide, point});
}

// Sums of products that float64 holds exactly, as int32.
Tensor exact_matmul(Conversion& c, const Tensor& a, const Tensor& b) {
  const Tensor product = c.call("matmul", {c.cast(a, TENON_DTYPE_F64), c.cast(b, TENON_DTYPE_F64)});
  return c.cast(product, TENON_DTYPE_I32);
}

// Zero points of the rows of a, and of the columns of b.
Ints row_shape() { return {-1, 1}; }
Ints column_shape() { return {}; }

}  // namespace

Values convert_quantize_linear(Conversion& c) {
  const Tensor &x = c.tensor("x"), &scale = c.tensor("y_scale");
  int64_t element_type = c.integer("output_dtype");
  if (c.has("y_zero_point"))
    element_type = c.importer.element_type(c.tensor("y_zero_point"));
  else if (element_type == 0)
    element_type = static_cast<int64_t>(ElementType::UInt8);
  const int32_t dtype = dtype_of(element_type, "attribute `output_dtype`");
  const auto type = static_cast<int32_t>(element_type);
  if (c.integer("precision") != 0 && c.integer("precision") != 1)
    c.refuse("attribute `precision`: expected FLOAT or that of the scale");
  const int32_t wide = x->dtype == TENON_DTYPE_F64 || scale->dtype == TENON_DTYPE_F64
                           ? TENON_DTYPE_F64
                           : TENON_DTYPE_F32;
  // The division is rounded to the dtype of its operands.
  const int32_t precision = c.integer("precision") == 1 ? wide : scale->dtype;
  const Tensor factors = along(c, scale, x);
  Tensor ratio = c.call("divide", {c.cast(x, precision), c.cast(factors, precision)});
  ratio = c.cast(ratio, wide);
  if (is_float8(dtype)) {
    if (c.has("y_zero_point") && is_known(c.tensor("y_zero_point")))
      for (double point : floats_of(c.input("y_zero_point"), "y_zero_point"))
        if (point != 0) c.refuse("a zero point other than 0 of float8 or float4");
    if (c.has("y_zero_point") && !is_known(c.tensor("y_zero_point")))
      c.refuse(
          "expected a zero point of float8 or float4 to be known when the model is loaded, got one "
          "that depends on the "
          "inputs; fix it by values={...}");
    if (find_narrow(type)) return {to_narrow(c, ratio, type)};
    if (c.integer("saturate", 1) == 0) return {c.cast(ratio, dtype)};
    const double limit = dtype == TENON_DTYPE_F8E4M3       ? 448
                         : dtype == TENON_DTYPE_F8E4M3FNUZ ? 240
                                                           : 57344;
    return {c.cast(c.call("clip", {ratio, -limit, limit}), dtype)};
  }
  Value point = c.input("y_zero_point");
  if (!point.is_none()) point = along(c, point.tensor("y_zero_point"), x);
  const Tensor made = quantised(c, ratio, point, dtype, type);
  c.importer.set_element_type(made, type);
  return {made};
}

Values convert_dequantize_linear(Conversion& c) {
  const Tensor &x = c.tensor("x"), &scale = c.tensor("x_scale");
  const int64_t given = c.integer("output_dtype");
  const int32_t out = given ? dtype_of(given, "attribute `output_dtype`") : scale->dtype;
  const Tensor factors = c.cast(along(c, scale, x), wide_dtype(scale));
  Tensor centre;
  if (x->dtype == TENON_DTYPE_I32 || x->dtype == TENON_DTYPE_I16 || x->dtype == TENON_DTYPE_U16 ||
      x->dtype == TENON_DTYPE_I8 || x->dtype == TENON_DTYPE_U8) {
    centre = c.cast(x, TENON_DTYPE_I32);
    if (c.has("x_zero_point"))
      centre = c.call("subtract",
                      {centre, along(c, c.cast(c.tensor("x_zero_point"), TENON_DTYPE_I32), x)});
  } else if (is_float8(x->dtype)) {
    centre = c.cast(x, TENON_DTYPE_F32);
    if (c.has("x_zero_point"))
      centre = c.call("subtract",
                      {centre, along(c, c.cast(c.tensor("x_zero_point"), TENON_DTYPE_F32), x)});
  } else {
    c.refuse(std::string("quantised numbers of ") + host->dtype_name(x->dtype));
  }
  return {c.cast(c.call("multiply", {c.cast(centre, factors->dtype), factors}), out)};
}

Values convert_matmul_integer(Conversion& c) {
  const Tensor a = centred(c, c.tensor("A"), c.input("a_zero_point"), row_shape()),
               b = centred(c, c.tensor("B"), c.input("b_zero_point"), column_shape());
  return {exact_matmul(c, a, b)};
}

Values convert_qlinear_matmul(Conversion& c) {
  const Tensor &a_scale = c.tensor("a_scale"), &b_scale = c.tensor("b_scale"),
               &y_scale = c.tensor("y_scale");
  const int32_t dtype = c.tensor("y_zero_point")->dtype;
  const Tensor product =
      exact_matmul(c, centred(c, c.tensor("a"), c.input("a_zero_point"), row_shape()),
                   centred(c, c.tensor("b"), c.input("b_zero_point"), column_shape()));
  const auto factor = [&](const Tensor& scale, const Ints& shape) {
    const Tensor wide = c.cast(scale, TENON_DTYPE_F32);
    if (wide->numel == 1) return c.call("reshape", {wide, Ints{}});
    return shape.empty() || wide->ndim > 1 ? wide : c.call("reshape", {wide, shape});
  };
  const Tensor real =
      c.call("multiply", {c.cast(product, TENON_DTYPE_F32), factor(a_scale, row_shape())});
  const Tensor ratio = c.call(
      "divide",
      {c.call("multiply", {real, factor(b_scale, column_shape())}), factor(y_scale, row_shape())});
  Value point = c.input("y_zero_point");
  if (point.tensor("y_zero_point")->numel == 1) point = c.call("reshape", {point, Ints{}});
  return {quantised(c, ratio, point, dtype)};
}

namespace {

bool is_byte(const Tensor& x) { return x->dtype == TENON_DTYPE_I8 || x->dtype == TENON_DTYPE_U8; }

// Sums of an integer convolution: of images by conv2d_integer, of others exact in float64. Margins hold the zero point, and so 0
// of what is centred.
Tensor exact_convolution(Conversion& c, const Tensor& x, const Value& x_point, const Tensor& w,
                         const Value& w_point) {
  if (w->ndim < 3) c.fail("expected w of [M, C / group, ...], got " + describe(*w.get()));
  const Ints shape = shape_of(w);
  Ints filters(shape.size(), 1);
  filters[0] = shape[0];
  const Window window = window_of(c, x, Ints(shape.begin() + 2, shape.end()));
  if (window.axes() == 2 && window.is_symmetric() && is_byte(x) && is_byte(w))
    return c.call("conv2d_integer", {x, w, x_point, w_point, window.strides, window.before,
                                     window.dilations, c.integer("group", 1)});
  const Tensor sums = correlate(c, c.cast(centred(c, x, x_point, {}), TENON_DTYPE_F64),
                                c.cast(centred(c, w, w_point, filters), TENON_DTYPE_F64), {},
                                window, c.integer("group", 1));
  return c.cast(sums, TENON_DTYPE_I32);
}

}  // namespace

Values convert_conv_integer(Conversion& c) {
  return {exact_convolution(c, c.tensor("x"), c.input("x_zero_point"), c.tensor("w"),
                            c.input("w_zero_point"))};
}

Values convert_qlinear_conv(Conversion& c) {
  const Tensor &x = c.tensor("x"), &w = c.tensor("w");
  Tensor sums = exact_convolution(c, x, c.input("x_zero_point"), w, c.input("w_zero_point"));
  Ints channels(static_cast<size_t>(x->ndim) - 1, 1);
  channels[0] = w->shape[0];
  if (c.has("B")) sums = c.call("add", {sums, c.call("reshape", {c.tensor("B"), channels})});
  const auto factor = [&](const char* name) {
    const Tensor wide = c.cast(c.tensor(name), TENON_DTYPE_F32);
    return c.call("reshape", {wide, wide->numel == 1 ? Ints{} : channels});
  };
  const Tensor scale = c.call(
      "divide", {c.call("multiply", {factor("x_scale"), factor("w_scale")}), factor("y_scale")});
  const Tensor ratio = c.call("multiply", {c.cast(sums, TENON_DTYPE_F32), scale});
  const Value point = c.call("reshape", {c.tensor("y_zero_point"), Ints{}});
  return {quantised(c, ratio, point, c.tensor("y_zero_point")->dtype)};
}

}  // namespace tenon::onnx
