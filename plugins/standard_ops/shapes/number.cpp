// SPDX-License-Identifier: Apache-2.0
// Complex numbers of their parts, and bits as numbers of another dtype.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {

TENON_INFER(join_complex) {
  const tenon_tensor &re = tensor_of(args[0]), &im = tensor_of(args[1]);
  if (re.dtype != im.dtype || !std::ranges::equal(shape_of(re), shape_of(im)))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "join_complex",
                        "expected parts of one dtype and shape, got %s %s and %s %s",
                        host->dtype_name(re.dtype), shape_text(re).c_str(),
                        host->dtype_name(im.dtype), shape_text(im).c_str());
  set_like(outs[0], re);
  outs[0].dtype = re.dtype == TENON_DTYPE_F64 ? TENON_DTYPE_C128 : TENON_DTYPE_C64;
  return TENON_OK;
}

TENON_INFER(view_dtype) {
  const tenon_tensor& x = tensor_of(args[0]);
  const int32_t dtype = static_cast<int32_t>(int_of(args[1]));
  const auto from = static_cast<int64_t>(host->dtype_size(x.dtype)),
             to = static_cast<int64_t>(host->dtype_size(dtype));
  begin_view(outs[0], x).dtype = static_cast<uint8_t>(dtype);
  for (int32_t axis = 0; axis < x.ndim; ++axis) add_axis_of(outs[0], x, axis);
  if (from == to) return TENON_OK;
  const int32_t last = x.ndim - 1;
  const bool grows = from > to;
  const int64_t ratio = grows ? from / to : to / from;
  bool fits = last >= 0 && (x.strides[last] == 1 || x.shape[last] == 1);
  for (int32_t axis = 0; fits && !grows && axis < last; ++axis)
    fits = x.strides[axis] % ratio == 0 || x.shape[axis] <= 1;
  if (fits && !grows)
    fits = x.shape[last] % ratio == 0 && (x.byte_offset % static_cast<uint64_t>(to)) == 0 &&
           reinterpret_cast<uintptr_t>(x.data) % static_cast<uintptr_t>(to) == 0;
  if (!fits)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "view_dtype",
                        "expected a dense last axis that %lld-byte elements divide, got shape %s "
                        "with strides %s of %s; make it contiguous, or convert with .to(dtype)",
                        ll(to), shape_text(x).c_str(),
                        list_text({x.strides, static_cast<size_t>(x.ndim)}).c_str(),
                        host->dtype_name(x.dtype));
  for (int32_t axis = 0; axis <= last; ++axis) {
    int64_t& stride = outs[0].strides[axis];
    stride = grows ? stride * ratio : stride / ratio;
  }
  outs[0].strides[last] = 1;
  outs[0].shape[last] = grows ? x.shape[last] * ratio : x.shape[last] / ratio;
  return TENON_OK;
}

TENON_INFER(complex_parts) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_room("as_real", x.ndim + 1, err));
  begin_view(outs[0], x).dtype = x.dtype == TENON_DTYPE_C128 ? TENON_DTYPE_F64 : TENON_DTYPE_F32;
  for (int32_t axis = 0; axis < x.ndim; ++axis)
    add_axis(outs[0], x.shape[axis], 2 * x.strides[axis]);
  add_axis(outs[0], 2, 1);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
