// SPDX-License-Identifier: Apache-2.0
#include "shapes/view_strides.hpp"

namespace tenon::standard_ops {

namespace {

[[gnu::cold]] tenon_status fail_shape(const char* op, const tenon_tensor& x, Ints wanted,
                                      tenon_err* err) {
  TENON_TRY(expect_room(op, static_cast<int64_t>(wanted.size()), err));
  return shapes::fail(
      err, TENON_INVALID_ARGUMENT, op,
      "expected a shape of %lld elements, to hold those of shape %s, got %s; one extent may be -1",
      ll(x.numel), shape_text(x).c_str(), list_text(wanted).c_str());
}

}  // namespace

tenon_status resolve_shape(const char* op, const tenon_tensor& x, Ints wanted, int64_t* shape,
                           tenon_err* err) {
  if (wanted.size() > TENON_MAX_NDIM) return fail_shape(op, x, wanted, err);
  int64_t known = 1;
  int64_t* unknown = nullptr;
  bool fits = true;
  for (size_t axis = 0; axis < wanted.size(); ++axis) {
    int64_t extent = wanted[axis];
    shape[axis] = extent;
    if (extent < 0) [[unlikely]] {
      fits &= extent == -1 && !unknown;
      unknown = shape + axis;
    } else if (__builtin_mul_overflow(known, extent, &known)) [[unlikely]] {
      known = INT64_MAX;  // such a shape can match no tensor
    }
  }
  if (unknown) {
    fits = fits && known != 0 && x.numel % known == 0;
    if (fits) *unknown = x.numel / known;
  } else {
    fits = known == x.numel;
  }
  return fits ? TENON_OK : fail_shape(op, x, wanted, err);
}

tenon_status flat_shape(const tenon_tensor& x, int64_t start, int64_t stop, int64_t* shape,
                        size_t* ndim, tenon_err* err) {
  shape[0] = 1;
  *ndim = x.ndim == 0;
  if (x.ndim == 0) return TENON_OK;
  int32_t first, last;
  TENON_TRY(resolve_axis("flatten", start, x.ndim, &first, err));
  TENON_TRY(resolve_axis("flatten", stop, x.ndim, &last, err));
  if (first > last)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "flatten",
                        "expected start <= stop, got %d and %d", first, last);
  for (int32_t axis = 0; axis < x.ndim; ++axis) {
    if (axis > first && axis <= last)
      shape[*ndim - 1] *= x.shape[axis];
    else
      shape[(*ndim)++] = x.shape[axis];
  }
  return TENON_OK;
}

// Walk both shapes from the back. Axes of `x` that lie evenly in memory form a chunk; every chunk
// must be covered exactly by a run of new axes.
bool view_strides(const tenon_tensor& x, Ints shape, int64_t* strides) {
  if (x.numel == 0 || (x.flags & TENON_TENSOR_CONTIGUOUS)) {
    int64_t stride = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
      strides[axis] = stride;
      stride *= std::max<int64_t>(shape[axis], 1);
    }
    return true;
  }
  int64_t next = static_cast<int64_t>(shape.size()) - 1;
  for (int32_t axis = x.ndim - 1; axis >= 0;) {
    if (x.shape[axis] == 1) {
      --axis;
      continue;
    }
    int64_t chunk = x.shape[axis], stride = x.strides[axis];
    for (--axis; axis >= 0 && (x.shape[axis] == 1 || x.strides[axis] == chunk * stride); --axis)
      chunk *= x.shape[axis];
    int64_t covered = 1;
    while (covered < chunk && next >= 0) {
      strides[next] = covered * stride;
      covered *= shape[static_cast<size_t>(next--)];
    }
    if (covered != chunk) return false;
  }
  for (; next >= 0; --next) strides[next] = 1;  // axes of length 1 remain
  return true;
}

}  // namespace tenon::standard_ops
