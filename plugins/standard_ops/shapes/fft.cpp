// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

// Different axes, at least one, each with at least one element. `*last`: the last one named.
tenon_status expect_axes(const char* op, const tenon_tensor& x, const tenon_value& axes,
                         int32_t* last, tenon_err* err) {
  Ints list = ints_of(axes);
  if (list.empty())
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected at least one axis, got none");
  uint32_t mask;
  TENON_TRY(resolve_axes(op, axes, x.ndim, &mask, err));
  for (int32_t axis = 0; axis < x.ndim; ++axis)
    if (mask >> axis & 1 && x.shape[axis] == 0)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected at least one element along axis %d, got shape %s", axis,
                          shape_text(x).c_str());
  *last = static_cast<int32_t>(list.back() < 0 ? list.back() + x.ndim : list.back());
  return TENON_OK;
}

}  // namespace

TENON_INFER(fft_c2c) {
  const tenon_tensor& x = tensor_of(args[0]);
  int32_t last;
  TENON_TRY(expect_axes("fft_c2c", x, args[1], &last, err));
  set_like(outs[0], x);
  return TENON_OK;
}

TENON_INFER(fft_r2c) {
  const tenon_tensor& x = tensor_of(args[0]);
  int32_t last;
  TENON_TRY(expect_axes("fft_r2c", x, args[1], &last, err));
  set_like(outs[0], x);
  outs[0].dtype = x.dtype == TENON_DTYPE_F64 ? TENON_DTYPE_C128 : TENON_DTYPE_C64;
  if (bool_of(args[2])) outs[0].shape[last] = x.shape[last] / 2 + 1;
  return TENON_OK;
}

TENON_INFER(fft_c2r) {
  const tenon_tensor& x = tensor_of(args[0]);
  int32_t last;
  TENON_TRY(expect_axes("fft_c2r", x, args[1], &last, err));
  const int64_t n = int_of(args[2]);
  if (n < 1 || x.shape[last] != n / 2 + 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "fft_c2r",
                        "expected n / 2 + 1 elements along axis %d for n = %lld, got shape %s",
                        last, ll(n), shape_text(x).c_str());
  set_like(outs[0], x);
  outs[0].dtype = static_cast<uint8_t>(shapes::real_dtype(x.dtype));
  outs[0].shape[last] = n;
  return TENON_OK;
}

}  // namespace tenon::standard_ops
