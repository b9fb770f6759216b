// SPDX-License-Identifier: Apache-2.0
// What stands between the brackets of x[...], understood once for reading and for writing.
//
// NumPy's rules: integers, slices, None and ... make a view; tensors, arrays and lists pick
// elements. A boolean mask counts as one integer tensor for each of its axes.
#pragma once

#include <Python.h>

#include <tenon/tensor.hpp>

#include <vector>

#include "small_int.hpp"

namespace tenon::python {

// The part of a key that makes a view: both as a description, for calls->view_of, and as
// steps, for operators that layers can watch.
struct BasicIndex {
  int32_t ndim = 0;
  int64_t shape[TENON_MAX_NDIM], strides[TENON_MAX_NDIM], offset = 0;
  int32_t slice_count = 0, select_count = 0, new_count = 0;
  int64_t slice_axes[TENON_MAX_NDIM], starts[TENON_MAX_NDIM], stops[TENON_MAX_NDIM],
      steps[TENON_MAX_NDIM];
  int64_t select_axes[TENON_MAX_NDIM], select_indices[TENON_MAX_NDIM];
  int64_t new_axes[TENON_MAX_NDIM];  // in the result
};

struct Key {
  BasicIndex basic;
  // The rest: integer tensors, one for each of these axes of the view. Empty for a basic key.
  std::vector<Tensor> positions;
  std::vector<int64_t> position_axes;
  // Whether nothing but integers stood between the positions: then the axes that they broadcast to
  // take their place in the result; otherwise those come first.
  bool side_by_side = true;

  bool is_basic() const { return positions.empty(); }
};

// False: IndexError, TypeError or what a conversion raised.
bool parse_key(tenon_tensor* tensor, PyObject* object, Key& key);

// The view that the basic part takes of `tensor`, by operators where a layer wants to see it. Empty:
// Python error set.
Tensor apply_basic(tenon_tensor* tensor, const BasicIndex& index);

// False: IndexError.
[[gnu::cold]] bool raise_index(int64_t index, int64_t length, int64_t axis);

// Position `index` along an axis of `length`, counted from the end if negative. False: IndexError.
inline bool normalise_index(int64_t& index, int64_t length, int64_t axis) {
  int64_t position = index < 0 ? index + length : index;
  if (static_cast<uint64_t>(position) >= static_cast<uint64_t>(length)) [[unlikely]]
    return raise_index(index, length, axis);
  index = position;
  return true;
}

// What a Python slice takes of an axis.
struct Slice {
  int64_t start, stop, step, length;
};

// False: a bound that is no number; the Python error is set.
bool read_any_slice(PyObject* object, int64_t whole, Slice& slice);

inline bool read_slice(PyObject* object, int64_t whole, Slice& slice) {
  auto* bounds = reinterpret_cast<PySliceObject*>(object);
  int64_t start = 0, stop = whole;
  bool is_simple = bounds->step == Py_None &&
                   (bounds->start == Py_None || small_int(bounds->start, start)) &&
                   (bounds->stop == Py_None || small_int(bounds->stop, stop));
  if (!is_simple) [[unlikely]] {
    Slice any;  // what a call gets the address of stays in no register
    bool is_read = read_any_slice(object, whole, any);
    return slice = any, is_read;
  }
  auto clamp = [whole](int64_t bound) {
    if (bound < 0) {
      bound += whole;
      bound = bound < 0 ? 0 : bound;
    }
    return bound < whole ? bound : whole;
  };
  start = clamp(start);
  stop = clamp(stop);
  slice = {start, stop, 1, start < stop ? stop - start : 0};
  return true;
}

}  // namespace tenon::python
