// SPDX-License-Identifier: Apache-2.0
// Conversions between dtypes, and of dtypes that hold two numbers in a byte.
#include "shapes/infer.hpp"
#include "shapes/packed.hpp"

namespace tenon::standard_ops {
namespace {

// A packed dtype takes another shape than its numbers: cast has no answer.
tenon_status infer_converted(const char* op, const tenon_value* args, tenon_meta* outs,
                             tenon_err* err) {
  const tenon_tensor& x = tensor_of(args[0]);
  const int32_t dtype = static_cast<int32_t>(int_of(args[1]));
  if (x.dtype != dtype && is_packed(dtype))
    return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                        "expected a dtype of one number in an element, got %s, which holds two; "
                        "use pack(x, dtype), which halves the last axis",
                        host->dtype_name(dtype));
  if (x.dtype != dtype && is_packed(x.dtype))
    return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                        "expected x of one number in an element, got dtype %s, which holds two; "
                        "use unpack(x, dtype), which doubles the last axis",
                        host->dtype_name(x.dtype));
  set_new(outs[0], dtype, shape_of(x));
  return TENON_OK;
}

}  // namespace

TENON_INFER(cast) { return infer_converted("cast", args, outs, err); }
TENON_INFER(primitive_copy) { return infer_converted("primitive_copy", args, outs, err); }

TENON_INFER(pack) {
  const tenon_tensor& x = tensor_of(args[0]);
  const int32_t dtype = static_cast<int32_t>(int_of(args[1]));
  if (!is_packed(dtype))
    return shapes::fail(err, TENON_TYPE_MISMATCH, "pack",
                        "expected dtype float4_e2m1_x2, int4_x2 or uint4_x2, got %s; use "
                        "cast(x, dtype) for dtypes of one number in an element",
                        host->dtype_name(dtype));
  if (x.ndim == 0 || x.shape[x.ndim - 1] % 2 != 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "pack",
                        "expected a last axis of even size, whose elements become pairs, got shape "
                        "%s; pad it by one",
                        shape_text(x).c_str());
  set_new(outs[0], dtype, shape_of(x));
  outs[0].shape[x.ndim - 1] /= 2;
  return TENON_OK;
}

TENON_INFER(unpack) {
  const tenon_tensor& x = tensor_of(args[0]);
  if (!is_packed(x.dtype))
    return shapes::fail(err, TENON_TYPE_MISMATCH, "unpack",
                        "expected x of dtype float4_e2m1_x2, int4_x2 or uint4_x2, got %s; use "
                        "cast(x, dtype) for dtypes of one number in an element",
                        host->dtype_name(x.dtype));
  const int32_t dtype = shapes::dtype_or(args[1], unpacked_dtype(x.dtype));
  const uint64_t taken = dtypes_of_unpacked(x.dtype);
  if (!(shapes::bit(dtype) & taken))
    return shapes::fail(err, TENON_TYPE_MISMATCH, "unpack",
                        "expected a dtype that holds the numbers of %s, %s, got %s",
                        host->dtype_name(x.dtype),
                        x.dtype == TENON_DTYPE_F4E2M1X2 ? "a floating one"
                        : x.dtype == TENON_DTYPE_I4X2   ? "a signed integer or a floating one"
                                                        : "an integer or a floating one",
                        host->dtype_name(dtype));
  if (x.ndim == 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "unpack",
                        "expected a last axis, which becomes twice as long, got shape ()");
  set_new(outs[0], dtype, shape_of(x));
  // A size that does not fit is refused where elements are counted.
  if (x.shape[x.ndim - 1] <= INT64_MAX / 2) outs[0].shape[x.ndim - 1] *= 2;
  return TENON_OK;
}

}  // namespace tenon::standard_ops
