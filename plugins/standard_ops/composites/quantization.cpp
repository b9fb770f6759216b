// SPDX-License-Identifier: Apache-2.0
// Quantisation: rounding to small integers times a scale, and back.
#include <tenon/ops/host_values.hpp>

#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

// Scales and zero points as they broadcast to x.
struct Steps {
  Tensor scale, zero_point;  // the second is null for 0
};

tenon_status read_steps(Scope& scope, const char* op, const Tensor& x, const tenon_value& scale,
                        const tenon_value& zero_point, int64_t given_axis, Steps* out,
                        tenon_err* err) {
  Tensor scales = operand(scope, scale), zeros = operand(scope, zero_point);
  if (!scope.ok()) return scope.status();
  if (scales->ndim > 1 || !is_real_floating(scales->dtype))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected one floating scale or a vector of them, got %s of shape %s",
                        host->dtype_name(scales->dtype), shape_text(*scales.get()).c_str());
  if (zeros && sizes_of(zeros) != sizes_of(scales))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected zero_point of the shape of scale, got %s and %s",
                        shape_text(*zeros.get()).c_str(), shape_text(*scales.get()).c_str());
  if (scales->ndim == 1) {
    int32_t axis;
    TENON_TRY(resolve_axis(op, given_axis, x->ndim, &axis, err));
    if (scales->shape[0] != x->shape[axis])
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected a scale for each of %lld slices along axis %d, got %lld",
                          ll(x->shape[axis]), axis, ll(scales->shape[0]));
    Shape beside(static_cast<size_t>(x->ndim), 1);
    beside[static_cast<size_t>(axis)] = scales->shape[0];
    scales = ops::reshape(scope, scales, beside);
    if (zeros) zeros = ops::reshape(scope, zeros, beside);
  }
  if (zeros) zeros = ops::cast(scope, zeros, scales->dtype);
  *out = {scales, zeros};
  return scope.status();
}

tenon_status expect_floating(const char* op, const Tensor& x, tenon_err* err) {
  if (is_real_floating(x->dtype)) return TENON_OK;
  return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected a floating x, got %s",
                      host->dtype_name(x->dtype));
}

// Of quantised numbers nothing but x has a gradient.
Steps without_gradient(Scope& scope, const Steps& steps) {
  return {ops::stop_gradient(scope, steps.scale),
          steps.zero_point ? ops::stop_gradient(scope, steps.zero_point) : Tensor()};
}

// round(x / scale) + zero_point, of any size.
Tensor levels(Scope& scope, const Tensor& x, const Steps& steps) {
  Tensor level = ops::round(scope, ops::divide(scope, x, steps.scale));
  return steps.zero_point ? ops::add(scope, level, steps.zero_point) : level;
}

Tensor values(Scope& scope, const Tensor& level, const Steps& steps) {
  Tensor from = steps.zero_point ? ops::subtract(scope, level, steps.zero_point) : level;
  return ops::multiply(scope, from, steps.scale);
}

// The identity for gradients, where `level` is from `low` to `high`.
Tensor straight_through(Scope& scope, const Tensor& x, const Steps& steps, double low,
                        double high) {
  Tensor plain = ops::stop_gradient(scope, x);
  Tensor level = levels(scope, plain, steps);
  Tensor inside = ops::logical_and(scope, ops::greater_equal(scope, level, low),
                                   ops::less_equal(scope, level, high));
  Tensor result = values(scope, ops::clip(scope, level, low, high), steps);
  Tensor moving = ops::add(scope, ops::subtract(scope, x, plain), result);
  return ops::where(scope, inside, moving, result);
}

bool is_float8(int32_t dtype) { return dtype == TENON_DTYPE_F8E4M3 || dtype == TENON_DTYPE_F8E5M2; }

tenon_status expect_no_zero_point(const char* op, const tenon_value& zero_point, int32_t dtype,
                                  tenon_err* err) {
  if (is_none(zero_point)) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected no zero_point beside %s, whose numbers lie around 0; leave it out",
                      host->dtype_name(dtype));
}

}  // namespace

TENON_DECOMPOSE(quantize_linear) {
  const char* op = "quantize_linear";
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_floating(op, x, err));
  const int32_t dtype = static_cast<int32_t>(args[4].v.i);
  if (is_float8(dtype)) {
    TENON_TRY(expect_no_zero_point(op, args[2], dtype, err));
  } else if (!(shapes::bit(dtype) & shapes::kIntegers) || host->dtype_size(dtype) > 2) {
    return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                        "expected dtype int8, uint8, int16, uint16, float8_e4m3 or float8_e5m2, "
                        "got %s",
                        host->dtype_name(dtype));
  }
  // Divided in float32 at least, so that halves between levels are what they are.
  if (x->dtype < TENON_DTYPE_F32) x = ops::cast(scope, x, TENON_DTYPE_F32);
  Steps steps;
  TENON_TRY(read_steps(scope, op, x, args[1], args[2], int_of(args[3]), &steps, err));
  steps = without_gradient(scope, steps);
  if (is_float8(dtype)) {
    const double limit = dtype == TENON_DTYPE_F8E4M3 ? 448 : 57344;
    const Tensor ratio = ops::divide(scope, ops::stop_gradient(scope, x), steps.scale);
    return finish(scope, outs, ops::cast(scope, ops::clip(scope, ratio, -limit, limit), dtype));
  }
  const double low = expression::lowest(dtype), high = expression::highest(dtype);
  Tensor level = ops::clip(scope, levels(scope, ops::stop_gradient(scope, x), steps), low, high);
  level = ops::where(scope, ops::isnan(scope, level), 0, level);
  return finish(scope, outs, ops::cast(scope, level, dtype));
}

TENON_DECOMPOSE(dequantize_linear) {
  const char* op = "dequantize_linear";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), scale = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  if (is_float8(x->dtype)) {
    TENON_TRY(expect_no_zero_point(op, args[2], x->dtype, err));
  } else if (!(shapes::bit(x->dtype) & shapes::kIntegers)) {
    return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected an x of integers or float8, got %s",
                        host->dtype_name(x->dtype));
  }
  Steps steps;
  TENON_TRY(read_steps(scope, op, x, args[1], args[2], int_of(args[3]), &steps, err));
  // float16 holds no int16, and no difference of two.
  const bool is_narrow = scale->dtype < TENON_DTYPE_F32;
  const int32_t dtype = is_narrow ? int32_t{TENON_DTYPE_F32} : int32_t{scale->dtype};
  if (is_narrow && steps.zero_point) steps.zero_point = ops::cast(scope, steps.zero_point, dtype);
  if (is_narrow) steps.scale = ops::cast(scope, steps.scale, dtype);
  Tensor result = values(scope, ops::cast(scope, x, dtype), steps);
  return finish(scope, outs, is_narrow ? ops::cast(scope, result, scale->dtype) : result);
}

TENON_DECOMPOSE(fake_quantize) {
  const char* op = "fake_quantize";
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_floating(op, x, err));
  const int64_t low = int_of(args[3]), high = int_of(args[4]);
  if (low >= high)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected quant_min below quant_max, got %lld and %lld", ll(low), ll(high));
  Steps steps;
  TENON_TRY(read_steps(scope, op, x, args[1], args[2], int_of(args[5]), &steps, err));
  return finish(
      scope, outs,
      straight_through(scope, x, steps, static_cast<double>(low), static_cast<double>(high)));
}

TENON_DECOMPOSE(fake_quantize_abs_max) {
  const char* op = "fake_quantize_abs_max";
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_floating(op, x, err));
  const int64_t bits = int_of(args[1]);
  if (bits < 2 || bits > 16)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected 2 to 16 bits, got %lld",
                        ll(bits));
  if (x->numel == 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected elements, got shape %s",
                        shape_text(*x.get()).c_str());
  const double levels = static_cast<double>((int64_t{1} << (bits - 1)) - 1);
  Tensor magnitude = ops::abs(scope, ops::stop_gradient(scope, x)), largest;
  Shape beside;
  if (is_none(args[2])) {
    largest = ops::max(scope, magnitude);
  } else {
    int32_t axis;
    TENON_TRY(resolve_axis(op, int_of(args[2]), x->ndim, &axis, err));
    std::vector<int64_t> others;
    for (int32_t i = 0; i < x->ndim; ++i)
      if (i != axis) others.push_back(i);
    largest = others.empty() ? magnitude : ops::max(scope, magnitude, others);
    beside.assign(static_cast<size_t>(x->ndim), 1);
    beside[static_cast<size_t>(axis)] = x->shape[axis];
  }
  // Zeros alone need no scale; any will do.
  Tensor scale = ops::divide(scope, largest, levels);
  Tensor divisor = ops::where(scope, ops::equal(scope, scale, 0), 1, scale);
  if (!beside.empty()) divisor = ops::reshape(scope, divisor, beside);
  return finish(scope, outs, straight_through(scope, x, {divisor, {}}, -levels, levels), scale);
}

namespace {

// How a weight is stored.
struct Storage {
  int64_t bits, group;  // elements that share a scale
};

tenon_status read_storage(const char* op, const tenon_value& bits, const tenon_value& group,
                          int64_t columns, Storage* out, tenon_err* err) {
  out->bits = int_of(bits);
  out->group = is_none(group) ? std::max<int64_t>(columns, 1) : int_of(group);
  if (out->bits != 8 && out->bits != 4)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected 8 or 4 bits, got %lld",
                        ll(out->bits));
  if (out->group < 1 || columns % out->group != 0 || (out->bits == 4 && columns % 2 != 0))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected rows whose length is a multiple of group_size, and even for 4 "
                        "bits, got %lld and %lld",
                        ll(columns), ll(out->group));
  return TENON_OK;
}

// Two numbers from -8 to 7 of int8 in each byte, the first in the lower half.
Tensor packed(Scope& scope, const Tensor& numbers) {
  if (!scope.ok()) return {};
  Tensor pairs = ops::reshape(scope, numbers, {numbers->shape[0], numbers->shape[1] / 2, 2});
  Tensor low = ops::bitwise_and(scope, ops::select(scope, pairs, 2, 0), 15);
  Tensor high = ops::bitwise_left_shift(scope, ops::select(scope, pairs, 2, 1), 4);
  return ops::bitwise_or(scope, low, high);
}

Tensor unpacked(Scope& scope, const Tensor& bytes) {
  if (!scope.ok()) return {};
  // An arithmetic shift to the right carries the sign.
  Tensor low = ops::bitwise_right_shift(scope, ops::bitwise_left_shift(scope, bytes, 4), 4);
  Tensor high = ops::bitwise_right_shift(scope, bytes, 4);
  return ops::reshape(scope, ops::stack(scope, {low, high}, 2),
                      {bytes->shape[0], 2 * bytes->shape[1]});
}

}  // namespace

TENON_DECOMPOSE(weight_quantize) {
  const char* op = "weight_quantize";
  Scope scope(err);
  Tensor weight = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_floating(op, weight, err));
  TENON_TRY(expect_ndim(op, "weight", *weight.get(), 2, "[out, in]", err));
  const int64_t rows = weight->shape[0], columns = weight->shape[1];
  const int32_t dtype = weight->dtype;
  Storage storage;
  TENON_TRY(read_storage(op, args[1], args[2], columns, &storage, err));
  const double levels = storage.bits == 8 ? 127 : 7;
  const bool is_narrow = dtype < TENON_DTYPE_F32;
  Tensor wide = ops::stop_gradient(scope, weight);
  if (is_narrow) wide = ops::cast(scope, wide, TENON_DTYPE_F32);
  const int64_t groups = columns / storage.group;
  wide = ops::reshape(scope, wide, {rows, groups, storage.group});
  Tensor largest = columns > 0 ? ops::max(scope, ops::abs(scope, wide), {2})
                               : full_with(scope, wide, Shape{rows, groups}, 0);
  // The scale as it is stored, so that weights are rounded to what they are read as.
  Tensor scale = ops::divide(scope, largest, levels);
  if (is_narrow) scale = ops::cast(scope, ops::cast(scope, scale, dtype), TENON_DTYPE_F32);
  Tensor divisor = ops::where(scope, ops::equal(scope, scale, 0), 1, scale);
  Tensor level = ops::round(scope, ops::divide(scope, wide, ops::unsqueeze(scope, divisor, {2})));
  level = ops::clip(scope, level, -levels, levels);
  level = ops::where(scope, ops::isnan(scope, level), 0, level);
  Tensor numbers = ops::cast(scope, ops::reshape(scope, level, {rows, columns}), TENON_DTYPE_I8);
  if (storage.bits == 4) numbers = packed(scope, numbers);
  if (is_narrow) scale = ops::cast(scope, scale, dtype);
  if (is_none(args[2])) scale = ops::reshape(scope, scale, {rows});
  return finish(scope, outs, numbers, scale);
}

TENON_DECOMPOSE(weight_dequantize) {
  const char* op = "weight_dequantize";
  Scope scope(err);
  Tensor quantized = operand(scope, args[0]), scale = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_ndim(op, "quantized", *quantized.get(), 2, "[out, in]", err));
  if (quantized->dtype != TENON_DTYPE_I8 || !is_real_floating(scale->dtype))
    return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                        "expected quantized of dtype int8 and a floating scale, got %s and %s",
                        host->dtype_name(quantized->dtype), host->dtype_name(scale->dtype));
  const int64_t rows = quantized->shape[0];
  const int64_t columns = quantized->shape[1] * (int_of(args[2]) == 4 ? 2 : 1);
  Storage storage;
  TENON_TRY(read_storage(op, args[2], args[3], columns, &storage, err));
  const int64_t groups = columns / storage.group;
  const Shape wanted = is_none(args[3]) ? Shape{rows} : Shape{rows, groups};
  if (sizes_of(scale) != wanted)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected scale of shape %s, got %s",
                        list_text(wanted).c_str(), shape_text(*scale.get()).c_str());
  Tensor numbers = storage.bits == 4 ? unpacked(scope, quantized) : quantized;
  numbers =
      ops::reshape(scope, ops::cast(scope, numbers, scale->dtype), {rows, groups, storage.group});
  Tensor factor = ops::reshape(scope, scale, {rows, groups, 1});
  if (columns == 0) return finish(scope, outs, full_with(scope, scale, Shape{rows, columns}, 0));
  return finish(scope, outs,
                ops::reshape(scope, ops::multiply(scope, numbers, factor), {rows, columns}));
}

}  // namespace tenon::standard_ops
