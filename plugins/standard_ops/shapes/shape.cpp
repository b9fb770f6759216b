// SPDX-License-Identifier: Apache-2.0
// Joining and padding.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {

TENON_INFER(concat) {
  auto tensors = tensors_of(args[0]);
  if (tensors.empty())
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "concat",
                        "expected at least one tensor, got none");
  const tenon_tensor& first = *tensors[0];
  int32_t axis, dtype = first.dtype;
  TENON_TRY(resolve_axis("concat", int_of(args[1]), first.ndim, &axis, err));
  set_like(outs[0], first);
  for (const tenon_tensor* tensor : tensors.subspan(1)) {
    bool fits = tensor->ndim == first.ndim;
    for (int32_t i = 0; fits && i < first.ndim; ++i)
      fits = i == axis || tensor->shape[i] == first.shape[i];
    if (!fits)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, "concat",
                          "expected shapes that differ along axis %d only, got %s and %s", axis,
                          shape_text(first).c_str(), shape_text(*tensor).c_str());
    outs[0].shape[axis] += tensor->shape[axis];
    dtype = host->dtype_promote(dtype, tensor->dtype);
  }
  outs[0].dtype = static_cast<uint8_t>(dtype);
  return TENON_OK;
}

TENON_INFER(pad_constant) {
  const tenon_tensor& x = tensor_of(args[0]);
  Ints padding = ints_of(args[1]);
  if (padding.size() != 2 * static_cast<size_t>(x.ndim))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "pad",
                        "expected two numbers for each of %d axes, got %s", x.ndim,
                        list_text(padding).c_str());
  TENON_TRY(expect_element("pad", x.dtype, args[2], err));
  begin_new(outs[0], x.dtype);
  for (int32_t axis = 0; axis < x.ndim; ++axis) {
    int64_t before = padding[2 * static_cast<size_t>(axis)],
            after = padding[2 * static_cast<size_t>(axis) + 1];
    int64_t extent = x.shape[axis] + before + after;
    // Both margins may crop, but not more than there is.
    if (extent < 0 ||
        x.shape[axis] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) < 0)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, "pad",
                          "expected to crop at most %lld elements along axis %d, got %lld and %lld",
                          ll(x.shape[axis]), axis, ll(before), ll(after));
    add_axis(outs[0], extent);
  }
  return TENON_OK;
}

}  // namespace tenon::standard_ops
