// SPDX-License-Identifier: Apache-2.0
// What shape rules have in common: their signature, and writing their results.
#pragma once

#include "shapes/arguments.hpp"

// The head of a shape rule; the generated operator table refers to it by this name.
#define TENON_INFER(op)                                                                       \
  tenon_status infer_##op([[maybe_unused]] const tenon_value* args,                           \
                          [[maybe_unused]] uint32_t nargs, [[maybe_unused]] tenon_meta* outs, \
                          [[maybe_unused]] uint32_t nouts, [[maybe_unused]] tenon_err* err)

namespace tenon::standard_ops {

inline void add_axis(tenon_meta& meta, int64_t extent) { meta.shape[meta.ndim++] = extent; }
inline void add_axes(tenon_meta& meta, Ints extents) {
  for (int64_t extent : extents) add_axis(meta, extent);
}

inline tenon_meta& begin_new(tenon_meta& meta, int32_t dtype) {
  meta.ndim = 0;
  meta.dtype = static_cast<uint8_t>(dtype);
  meta.kind = TENON_META_NEW;
  return meta;
}
inline void set_new(tenon_meta& meta, int32_t dtype, Ints shape) {
  add_axes(begin_new(meta, dtype), shape);
}
inline void set_like(tenon_meta& meta, const tenon_tensor& tensor) {
  set_new(meta, tensor.dtype, shape_of(tensor));
}

// Views: start without axes, then add them.
inline tenon_meta& begin_view(tenon_meta& meta, const tenon_tensor& base, uint16_t argument = 0) {
  meta.ndim = 0;
  meta.dtype = base.dtype;
  meta.kind = TENON_META_VIEW;
  meta.view_of = argument;
  meta.offset = 0;
  return meta;
}
inline void add_axis(tenon_meta& meta, int64_t extent, int64_t stride) {
  meta.strides[meta.ndim] = stride;
  meta.shape[meta.ndim++] = extent;
}
inline void add_axis_of(tenon_meta& meta, const tenon_tensor& base, int32_t axis) {
  add_axis(meta, base.shape[axis], base.strides[axis]);
}

// Room for one more axis?
inline tenon_status expect_room(const char* op, int64_t ndim, tenon_err* err) {
  if (ndim <= TENON_MAX_NDIM) return TENON_OK;
  return shapes::fail(err, TENON_UNSUPPORTED, op, "expected a result of at most %d axes, got %lld",
                      TENON_MAX_NDIM, ll(ndim));
}

// Shape of a reduction of `x` over the axes in `mask`.
inline void set_reduced(tenon_meta& meta, const tenon_tensor& x, uint32_t mask, bool keepdim,
                        int32_t dtype) {
  begin_new(meta, dtype);
  for (int32_t axis = 0; axis < x.ndim; ++axis) {
    if (!(mask >> axis & 1))
      add_axis(meta, x.shape[axis]);
    else if (keepdim)
      add_axis(meta, 1);
  }
}

// Extend `shape`, aligned at the last axis, to broadcast with `other` too.
inline bool broadcast_into(int64_t* shape, int32_t* ndim, Ints other) {
  int32_t count = static_cast<int32_t>(other.size());
  if (count > *ndim) {
    std::copy_backward(shape, shape + *ndim, shape + count);
    std::fill_n(shape, count - *ndim, int64_t{1});
    *ndim = count;
  }
  int64_t* tail = shape + (*ndim - count);
  for (int32_t axis = 0; axis < count; ++axis) {
    if (tail[axis] == other[axis] || other[axis] == 1) continue;
    if (tail[axis] != 1) return false;
    tail[axis] = other[axis];
  }
  return true;
}

inline bool can_expand(Ints from, Ints to) {
  if (from.size() > to.size()) return false;
  Ints tail = to.last(from.size());
  for (size_t axis = 0; axis < from.size(); ++axis)
    if (from[axis] != tail[axis] && from[axis] != 1) return false;
  return true;
}

}  // namespace tenon::standard_ops
