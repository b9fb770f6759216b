// SPDX-License-Identifier: Apache-2.0
// Weights of float8 beside their scales, for devices and shapes without a kernel.
#include <string_view>

#include "composites/compose.hpp"

namespace tenon::standard_ops {

// Of shapes/float8.cpp. A kernel is given what these checks let pass; so is the decomposition.
tenon_status infer_linear_fp8(const tenon_value* args, uint32_t nargs, tenon_meta* outs,
                              uint32_t nouts, tenon_err* err);

namespace {

constexpr double kLargest = 448;  // of float8_e4m3

// `scales` [blocks of rows, blocks of columns], one for each element of a weight of this shape.
Tensor of_elements(Scope& scope, const Tensor& scales, Ints block, int64_t rows, int64_t columns) {
  Tensor wide = ops::repeat(scope, scales, std::min(block[0], rows), 0);
  wide = ops::repeat(scope, wide, std::min(block[1], columns), 1);
  return ops::slice(scope, wide, {0, 1}, {0, 0}, {rows, columns});
}

// `x` / `scale` in float8, as the floats that these are.
Tensor rounded(Scope& scope, const Tensor& x, const Tensor& scale) {
  if (!scope.ok()) return {};
  const Tensor ratio = ops::clip(scope, ops::divide(scope, x, scale), -kLargest, kLargest);
  return ops::cast(scope, ops::cast(scope, ratio, TENON_DTYPE_F8E4M3), x->dtype);
}

// The scale that lets the largest magnitude along the last axis fit. Zeros, and numbers so small that their scale is 0,
// need none; any will do.
Tensor scale_of_rows(Scope& scope, const Tensor& x) {
  const Tensor largest = ops::max(scope, ops::abs(scope, x), {-1}, true);
  const Tensor scale = ops::divide(scope, largest, kLargest);
  return ops::where(scope, ops::equal(scope, scale, 0), 1, scale);
}

// `x` rounded to float8 and back; its gradient is that of the identity.
Tensor rounded_activations(Scope& scope, const Tensor& x, const Tensor& given, Ints block) {
  if (!scope.ok() || x->numel == 0) return x;
  const Tensor plain = ops::stop_gradient(scope, x);
  Tensor result;
  if (given) {
    const Tensor scale = ops::reshape(scope, given, IntList());
    result = ops::multiply(scope, rounded(scope, plain, scale), scale);
  } else if (block.empty()) {
    const Tensor scale = scale_of_rows(scope, plain);
    result = ops::multiply(scope, rounded(scope, plain, scale), scale);
  } else {
    // Groups of columns, of which the last one is filled up with zeros.
    const int64_t columns = x->shape[x->ndim - 1], group = std::min(block[1], columns);
    const int64_t groups = columns / group + (columns % group != 0);
    Shape margins(2 * static_cast<size_t>(x->ndim), 0), apart = sizes_of(x), whole = sizes_of(x);
    margins.back() = groups * group - columns;
    apart.back() = groups;
    apart.push_back(group);
    whole.back() = groups * group;
    Tensor parts = ops::reshape(scope, ops::pad_constant(scope, plain, margins, 0), apart);
    const Tensor scale = scale_of_rows(scope, parts);
    parts = ops::multiply(scope, rounded(scope, parts, scale), scale);
    result = ops::narrow(scope, ops::reshape(scope, parts, whole), -1, 0, columns);
  }
  // Infinity less itself is no number; it is as large as the scale lets it be, and passes no gradient.
  return ops::where(scope, ops::isfinite(scope, plain),
                    ops::add(scope, ops::subtract(scope, x, plain), result), result);
}

}  // namespace

TENON_DECOMPOSE(linear_fp8) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  const Tensor weight = operand(scope, args[1]), scale = operand(scope, args[2]),
               bias = operand(scope, args[3]), x_scale = operand(scope, args[4]);
  if (!scope.ok()) return scope.status();
  if (args[0].tag != TENON_VALUE_TENSOR || args[1].tag != TENON_VALUE_TENSOR)
    return shapes::fail(err, TENON_TYPE_MISMATCH, "linear_fp8",
                        "expected x and weight to be tensors, got a number");
  tenon_meta result;
  TENON_TRY(infer_linear_fp8(args, 7, &result, 1, err));
  const Ints block = ints_of(args[5]);
  const int32_t dtype = x->dtype;
  // Small floats are computed in float32, and rounded once.
  const auto wide = [&](const Tensor& each) {
    return each && each->dtype < TENON_DTYPE_F32 ? ops::cast(scope, each, TENON_DTYPE_F32) : each;
  };
  x = wide(x);
  Tensor out;
  if (text_of(args[6]) == "float8") {
    x = rounded_activations(scope, x, wide(x_scale), block);
    const Tensor shift = wide(bias);
    out = ops::linear_fp8(scope, x, weight, scale, shift, nullptr, optional_ints(args[5]), "float");
  } else {
    Tensor stored = wide(weight), factor;
    if (is_none(args[5])) {
      // Scales of rows are factors of the sums, so that the product is one of the stored numbers.
      factor = scale->numel == 1 ? ops::reshape(scope, scale, IntList())
                                 : ops::reshape(scope, scale, {scale->numel});
    } else {
      const Tensor factors =
          of_elements(scope, wide(scale), block, weight->shape[0], weight->shape[1]);
      stored = ops::multiply(scope, stored, factors);
    }
    out = ops::linear(scope, x, stored);
    if (factor) out = ops::multiply(scope, out, wide(factor));
    if (bias) out = ops::add(scope, out, wide(bias));
  }
  if (!scope.ok()) return scope.status();
  return finish(scope, outs, out->dtype == dtype ? out : ops::cast(scope, out, dtype));
}

}  // namespace tenon::standard_ops
