// SPDX-License-Identifier: Apache-2.0
#include "index_key.hpp"

#include <algorithm>
#include <climits>

#include "argument_parser.hpp"
#include "call.hpp"
#include "convert.hpp"
#include "errors.hpp"
#include "runtime.hpp"

namespace tenon::python {
namespace {

constexpr Py_ssize_t kMaxItems = 2 * TENON_MAX_NDIM;

enum class ItemKind : uint8_t { kInteger, kSlice, kNewAxis, kEllipsis, kPositions, kMask };

struct Item {
  ItemKind kind;
  PyObject* object;  // borrowed
  int64_t integer;
  Tensor tensor;  // kPositions, kMask

  int32_t axes_consumed() const {
    if (kind == ItemKind::kMask) return tensor->ndim;
    return kind == ItemKind::kNewAxis || kind == ItemKind::kEllipsis ? 0 : 1;
  }
  bool picks() const { return kind == ItemKind::kPositions || kind == ItemKind::kMask; }
};

// An index tensor on the device of the indexed one: bool for masks, int64 for positions.
Tensor index_tensor(const tenon_tensor* indexed, PyObject* object) {
  Tensor index = as_tensor(object, kAnyDtype, TENON_DEVICE_NONE);
  if (!index) {
    if (PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      raise_error(PyExc_TypeError,
                  "expected integers, slices, None, ..., or lists, arrays or tensors of integers "
                  "or bools as "
                  "an index, got %s",
                  type_name(object));
    }
    return {};
  }
  bool empty_list = index->numel == 0 && PyList_Check(object);
  if (index->dtype > TENON_DTYPE_I64 && !empty_list) {
    raise_error(PyExc_IndexError,
                "expected integers or bools as an index, got %s; convert it with .to(tenon.int64)",
                host->dtype_name(index->dtype));
    return {};
  }
  int32_t dtype = index->dtype == TENON_DTYPE_BOOL ? TENON_DTYPE_BOOL : TENON_DTYPE_I64;
  return convert_tensor(index.get(), dtype, indexed->device);
}

// Sort out one item of the key.
bool read_item(const tenon_tensor* indexed, PyObject* object, Item& item) {
  item.object = object;
  if (PySlice_Check(object)) return item.kind = ItemKind::kSlice, true;
  if (object == Py_None) return item.kind = ItemKind::kNewAxis, true;
  if (object == Py_Ellipsis) return item.kind = ItemKind::kEllipsis, true;
  tenon_value number;
  if (!is_tensor(object) && !PyBool_Check(object)) {
    int boxed = box_number(object, number, nullptr);
    if (boxed < 0) return false;
    if (boxed == 1 && number.tag == TENON_VALUE_INT) {
      item.integer = number.v.i;
      return item.kind = ItemKind::kInteger, true;
    }
  }
  item.tensor = index_tensor(indexed, object);
  if (!item.tensor) return false;
  item.kind = item.tensor->dtype == TENON_DTYPE_BOOL ? ItemKind::kMask : ItemKind::kPositions;
  return true;
}

// An extent of 0 fits every axis, as in NumPy: such a mask takes nothing.
bool check_mask(const tenon_tensor* indexed, const tenon_tensor* mask, int32_t axis) {
  for (int32_t i = 0; i < mask->ndim; ++i)
    if (mask->shape[i] != 0 && mask->shape[i] != indexed->shape[axis + i])
      return raise_error(
          PyExc_IndexError,
          "expected a mask of length %lld along axis %d to match the tensor, got %lld",
          static_cast<long long>(indexed->shape[axis + i]), axis + i,
          static_cast<long long>(mask->shape[i]));
  return true;
}

// The positions of a mask's true elements: one tensor for each axis. A 0-d mask stands for a new
// axis of length one, which it keeps or empties.
bool add_mask_positions(Key& key, tenon_tensor* mask) {
  Tensor readable = Tensor::borrow(mask);
  if (mask->ndim == 0) {
    const int64_t one[1] = {1};
    readable = TENON_CALL(reshape, value_of(mask), value_of(one, 1));
    if (!readable) return false;
  }
  Tensor rows = TENON_CALL(nonzero, value_of(readable.get()));
  if (!rows) return false;
  for (int32_t axis = 0; axis < readable->ndim; ++axis) {
    Tensor column =
        TENON_CALL(select, value_of(rows.get()), value_of(int64_t{1}), value_of(int64_t{axis}));
    if (!column) return false;
    key.positions.push_back(std::move(column));
  }
  return true;
}

// Builds the view axis by axis, from left to right.
class Builder {
 public:
  Builder(const tenon_tensor* tensor, Key& key) : tensor_(tensor), key_(key), basic_(key.basic) {}

  bool add(Item& item, int32_t ellipsis_axes) {
    if (item.picks() || item.kind == ItemKind::kInteger) note_position();
    switch (item.kind) {
      case ItemKind::kInteger:
        return select(item.integer);
      case ItemKind::kSlice:
        separate();
        return slice(item.object);
      case ItemKind::kNewAxis:
        separate();
        return insert();
      case ItemKind::kEllipsis:
        separate();
        for (int32_t i = 0; i < ellipsis_axes; ++i)
          if (!keep()) return false;
        return true;
      case ItemKind::kPositions:
        key_.position_axes.push_back(basic_.ndim);
        key_.positions.push_back(std::move(item.tensor));
        return keep();
      case ItemKind::kMask:
        break;
    }
    int32_t axes = item.tensor->ndim;
    if (!check_mask(tensor_, item.tensor.get(), axis_) ||
        !add_mask_positions(key_, item.tensor.get()))
      return false;
    for (int32_t i = 0; i < std::max(axes, 1); ++i) {
      key_.position_axes.push_back(basic_.ndim);
      if (!(axes == 0 ? insert() : keep())) return false;
    }
    return true;
  }

  bool finish() {
    while (axis_ < tensor_->ndim)
      if (!keep()) return false;
    return true;
  }

 private:
  // Integers count as positions where NumPy asks whether positions stand side by side.
  void note_position() {
    if (separated_) key_.side_by_side = false;
    has_position_ = true;
  }
  void separate() {
    if (has_position_) separated_ = true;
  }

  bool emit(int64_t length, int64_t stride) {
    if (basic_.ndim == TENON_MAX_NDIM)
      return raise_error(PyExc_IndexError, "expected at most %d axes in the result",
                         TENON_MAX_NDIM);
    basic_.shape[basic_.ndim] = length;
    basic_.strides[basic_.ndim++] = stride;
    return true;
  }
  bool keep() {
    int64_t length = tensor_->shape[axis_], stride = tensor_->strides[axis_];
    ++axis_;
    return emit(length, stride);
  }
  bool insert() {
    basic_.new_axes[basic_.new_count < TENON_MAX_NDIM ? basic_.new_count++ : 0] = basic_.ndim;
    return emit(1, 0);
  }
  bool select(int64_t index) {
    if (!normalise_index(index, tensor_->shape[axis_], axis_)) return false;
    basic_.select_axes[basic_.select_count] = axis_;
    basic_.select_indices[basic_.select_count++] = index;
    basic_.offset += index * tensor_->strides[axis_++];
    return true;
  }
  bool slice(PyObject* object) {
    Slice slice;
    int64_t whole = tensor_->shape[axis_], stride = tensor_->strides[axis_];
    if (!read_slice(object, whole, slice)) return false;
    auto [start, stop, step, length] = slice;
    if (length == 0) start = stop = 0;
    if (length != whole || step != 1) {
      int32_t i = basic_.slice_count++;
      basic_.slice_axes[i] = axis_;
      basic_.starts[i] = start;
      basic_.stops[i] = step < 0 && stop < 0 ? INT64_MIN : stop;
      basic_.steps[i] = step;
    }
    basic_.offset += start * stride;
    ++axis_;
    return emit(length, length > 1 ? stride * step : stride);
  }

  const tenon_tensor* tensor_;
  Key& key_;
  BasicIndex& basic_;
  int32_t axis_ = 0;  // of the tensor
  bool has_position_ = false, separated_ = false;
};

}  // namespace

bool raise_index(int64_t index, int64_t length, int64_t axis) {
  return raise_error(PyExc_IndexError, "index %lld is out of range for axis %lld of length %lld",
                     static_cast<long long>(index), static_cast<long long>(axis),
                     static_cast<long long>(length));
}

bool read_any_slice(PyObject* object, int64_t whole, Slice& slice) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(object, &start, &stop, &step) < 0) return false;
  int64_t length = PySlice_AdjustIndices(whole, &start, &stop, step);
  slice = {start, stop, step, length};
  return true;
}

bool parse_key(tenon_tensor* tensor, PyObject* object, Key& key) {
  PyObject* const* objects = &object;
  Py_ssize_t count = 1;
  if (PyTuple_Check(object)) {
    objects = reinterpret_cast<PyTupleObject*>(object)->ob_item;
    count = PyTuple_GET_SIZE(object);
  }
  if (count > kMaxItems)
    return raise_error(PyExc_IndexError, "expected at most %zd indices, got %zd", kMaxItems, count);
  Item few[4];
  std::vector<Item> many;
  if (count > 4) many.resize(static_cast<size_t>(count));
  Item* items = count > 4 ? many.data() : few;
  int32_t consumed = 0;
  bool has_ellipsis = false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!read_item(tensor, objects[i], items[i])) return false;
    consumed += items[i].axes_consumed();
    if (items[i].kind != ItemKind::kEllipsis) continue;
    if (has_ellipsis) return raise_error(PyExc_IndexError, "expected one ... in an index, got two");
    has_ellipsis = true;
  }
  if (consumed > tensor->ndim)
    return raise_error(PyExc_IndexError,
                       "too many indices: the tensor has %d axes, the index takes %d", tensor->ndim,
                       consumed);
  Builder builder(tensor, key);
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!builder.add(items[i], tensor->ndim - consumed)) return false;
  return builder.finish();
}

Tensor apply_basic(tenon_tensor* tensor, const BasicIndex& index) {
  tenon_tensor* direct;
  tenon_err* err = brief_sink();
  tenon_status status = calls->view_of(tensor, tensor->dtype, index.ndim, index.shape,
                                       index.strides, index.offset, &direct, err);
  if (status != TENON_OK) return raise(status, err);
  if (direct) return Tensor::adopt(direct);
  Tensor view = Tensor::borrow(tensor);
  if (index.slice_count > 0) {
    size_t count = static_cast<size_t>(index.slice_count);
    view = TENON_CALL(slice, value_of(view.get()), value_of(index.slice_axes, count),
                      value_of(index.starts, count), value_of(index.stops, count),
                      value_of(index.steps, count));
  }
  for (int32_t i = index.select_count; view && i-- > 0;)
    view = TENON_CALL(select, value_of(view.get()), value_of(index.select_axes[i]),
                      value_of(index.select_indices[i]));
  if (view && index.new_count > 0)
    view = TENON_CALL(unsqueeze, value_of(view.get()),
                      value_of(index.new_axes, static_cast<size_t>(index.new_count)));
  // x[...] is a new tensor too, or `y = x[...]; y.requires_grad_()` would change x.
  if (view && view.get() == tensor)
    view = TENON_CALL(expand, value_of(tensor),
                      value_of(tensor->shape, static_cast<size_t>(tensor->ndim)));
  return view;
}

}  // namespace tenon::python
