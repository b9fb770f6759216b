// SPDX-License-Identifier: Apache-2.0
// Weights of float8 beside their scales.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {

// A composite; a kernel for the whole relies on these checks.
TENON_INFER(linear_fp8) {
  const char* op = "linear_fp8";
  const tenon_tensor &x = tensor_of(args[0]), &weight = tensor_of(args[1]);
  const tenon_tensor *scale = optional_tensor(args[2]), *bias = optional_tensor(args[3]),
                     *x_scale = optional_tensor(args[4]);
  TENON_TRY(expect_ndim(op, "weight", weight, 2, "[out, in]", err));
  for (const tenon_tensor* each : {&x, &weight, scale, bias, x_scale})
    if (each && !(shapes::bit(each->dtype) & shapes::kFloats))
      return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                          "expected tensors of floating dtypes, got %s; a weight of bytes is read "
                          "as float8 by bitcast()",
                          host->dtype_name(each->dtype));
  const int64_t rows = weight.shape[0], columns = weight.shape[1];
  if (x.ndim == 0 || x.shape[x.ndim - 1] != columns)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x.shape[-1] to be the %lld columns of weight, got shapes %s and "
                        "%s",
                        ll(columns), shape_text(x).c_str(), shape_text(weight).c_str());
  const Ints block = ints_of(args[5]);
  if (!is_none(args[5])) {
    if (block.size() != 2 || block[0] < 1 || block[1] < 1)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected block to be two numbers of at least 1, [rows, columns], got %s",
                          list_text(block).c_str());
    const int64_t wanted[] = {rows / block[0] + (rows % block[0] != 0),
                              columns / block[1] + (columns % block[1] != 0)};
    if (!scale || !std::ranges::equal(shape_of(*scale), wanted))
      return shapes::fail(
          err, TENON_INVALID_ARGUMENT, op, "expected a scale for each block, shape %s, got %s",
          list_text(wanted).c_str(), scale ? shape_text(*scale).c_str() : "a number");
  } else if (scale && scale->numel != 1 &&
             !(scale->ndim >= 1 && scale->ndim <= 2 && scale->shape[0] == rows &&
               scale->numel == rows)) {
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected scale to be one number, or one for each row of weight, shape "
                        "[%lld] or [%lld, 1], got %s; blocks need `block`",
                        ll(rows), ll(rows), shape_text(*scale).c_str());
  }
  if (!bias && !is_none(args[3]))
    return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected bias to be a tensor, got a number");
  if (bias && (bias->ndim != 1 || bias->shape[0] != rows))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected bias of shape [%lld], got %s",
                        ll(rows), shape_text(*bias).c_str());
  const std::string_view activations = text_of(args[6]);
  if (activations != "float" && activations != "float8")
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected activations 'float' or 'float8', got '%.*s'",
                        static_cast<int>(activations.size()), activations.data());
  if (!is_none(args[4]) && activations == "float")
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x_scale with activations 'float8' alone, as x is not rounded "
                        "otherwise");
  if (x_scale && x_scale->numel != 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x_scale to be one number, got shape %s",
                        shape_text(*x_scale).c_str());
  set_new(outs[0], x.dtype, shape_of(x).first(static_cast<size_t>(x.ndim) - 1));
  add_axis(outs[0], rows);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
