// SPDX-License-Identifier: Apache-2.0
// The parameters of aclnn functions, described by the arguments and results of a kernel. Each method is a kind of
// parameter in bindings/*.yaml: those before the first heading are docs/bindings.md's, the files declare the others.
#pragma once

#include <tenon/unbox.h>

#include <span>
#include <vector>

#include "objects.hpp"
#include "runtime/device.hpp"

namespace ascend {

// After a failure of one of them status() is the failure, and what is returned is of no use.
class Parameters {
 public:
  Parameters(tenon_ctx* ctx, const char* op, tenon_err* err) : ctx_(ctx), op_(op), err_(err) {}
  Parameters(const Parameters&) = delete;

  Tensor tensor(const tenon_value& value);  // NONE: none
  Scalar scalar(int64_t value) { return {TENON_DTYPE_I64, value}; }
  Scalar scalar(double value) { return {TENON_DTYPE_F64, value}; }
  Scalar scalar(const tenon_value& value);
  IntArray ints(const tenon_value& value) { return array_of(list_of(value)); }
  IntArray axes(const tenon_value& value, const tenon_value& tensor);  // NONE: all axes
  int dtype(const tenon_value& value) {  // a dtype, or that of a tensor
    return acl_dtype(value.tag == TENON_VALUE_DTYPE ? static_cast<int>(value.v.i)
                                                    : tenon_arg_tensor(&value)->dtype);
  }

  // ---- tensors seen otherwise ----
  Tensor no_tensor() {
    return {.dtype = 0, .format = 0, .shape = {}, .strides = {}, .data = nullptr, .is_none = true};
  }
  // Any view; strides are not negative.
  Tensor view(int dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, void* data);
  // In the format that names its axes: NC, NCL, NCHW or NCDHW.
  Tensor image(const tenon_value& value);
  Tensor transposed(const tenon_value& value);  // last two axes exchanged
  Tensor matrix(const tenon_value& value);      // all axes but the last as one
  Tensor vector(const tenon_value& value);      // all axes as one
  Tensor shaped(const tenon_value& value, std::vector<int64_t> shape);  // with as many elements
  // With a last axis of length 1; of a list, the first.
  Tensor coordinates(const tenon_value& value);
  // With an axis of length 1 where `like` has that axis.
  Tensor with_axis(const tenon_value& value, const tenon_value& axis, const tenon_value& like);
  // With all axes in the place of one axis of `like` merged, whose other axes it has.
  Tensor merged(const tenon_value& value, const tenon_value& axis, const tenon_value& like);
  TensorList tensors(const tenon_value& list);

  // ---- tensors that other functions prepare (indices.cpp) ----
  // Indices along an axis of `tensor`, none of which counts from the end.
  Tensor counted(const tenon_value& indices, const tenon_value& axis, const tenon_value& tensor);
  Tensor counted_vector(const tenon_value& indices, const tenon_value& axis,
                        const tenon_value& tensor);
  // Indices along several axes, the first of which is `axis`.
  TensorList counted_list(const tenon_value& indices, const tenon_value& axis,
                          const tenon_value& tensor);
  // One row for each element of the shape to which the indices broadcast, with one column for each of them.
  Tensor stacked(const tenon_value& indices);
  // `tensor` with the axes in front that as many indices from `axis` on are for.
  Tensor indexed(const tenon_value& tensor, const tenon_value& indices, const tenon_value& axis);
  // A result of index with the axes in front, as one, to which the indices broadcast.
  Tensor index_rows(const tenon_value& result, const tenon_value& indices, const tenon_value& axis);
  // `to` with the elements of `from`, for functions that change their argument.
  Tensor copied(const tenon_value& from, const tenon_value& to);

  // ---- results that the operator does not have, in memory that lives until the call ends ----
  Tensor scratch_of(std::vector<int64_t> shape, int dtype);
  Tensor scratch(const tenon_value& like);            // shape and dtype of another
  Tensor scratch_indices(const tenon_value& like);    // its shape, in int64
  Tensor scratch_rows(const tenon_value& like);       // one float32 for each row
  Tensor scratch_channels(const tenon_value& image);  // one float32 for each channel
  // As many elements as `like` has, along one axis.
  Tensor scratch_vector(const tenon_value& like, const tenon_value& dtype);
  // One element for each group of channels of each sample.
  Tensor scratch_groups(const tenon_value& image, const tenon_value& groups);

  // ---- numbers ----
  // A number as a tensor's dtype holds it: integers are cut off, booleans are whether it is zero.
  Scalar scalar_as(const tenon_value& value, const tenon_value& tensor);
  Scalar given_scalar(const tenon_value& value) { return scalar(value); }
  Scalar float_scalar(double value) { return {TENON_DTYPE_F32, static_cast<float>(value)}; }
  Scalar int32_scalar(const tenon_value& value) {
    return {TENON_DTYPE_I32, static_cast<int32_t>(value.v.i)};
  }
  const char* chars(const char* text) { return text; }
  const char* chars(const tenon_value& value) { return tenon_arg_string(&value); }
  // Of an integer, a flag or a list of one.
  int64_t integer(const tenon_value& value) { return list_of(value)[0]; }
  int64_t extent_of(const tenon_value& tensor, int64_t axis) {
    return tenon_arg_tensor(&tensor)->shape[axis];
  }
  // The product of those of later axes.
  int64_t extent_behind(const tenon_value& tensor, int64_t axis);
  int64_t axis_of(const tenon_value& axis, const tenon_value& tensor);  // counted from the first
  int64_t either(const tenon_value& value, const tenon_value& otherwise) {
    return value.tag == TENON_VALUE_NONE ? otherwise.v.i : value.v.i;
  }
  BoolArray flags(int64_t first, int64_t second, int64_t third) {
    return {{first != 0, second != 0, third != 0}};
  }

  // ---- lists of numbers ----
  IntArray int_list(int64_t one) { return {{one}}; }
  // One number for each of two axes; a list of one is for both.
  IntArray pair(int64_t both) { return {{both, both}}; }
  IntArray pair(const tenon_value& value) {
    return list_of(value).size() == 1 ? pair(list_of(value)[0]) : ints(value);
  }
  IntArray pair(const tenon_value& value, const tenon_value& otherwise) {
    return pair(value.tag == TENON_VALUE_NONE ? otherwise : value);
  }
  IntArray extent(const tenon_value& tensor, int64_t axis);
  IntArray last_extents(const tenon_value& count, const tenon_value& tensor);
  IntArray margins(const tenon_value& padding);  // the pairs of the last axis first
  // What lies before and behind a slice of `whole`, or a place on one of its axes.
  IntArray margins_of_slice(const tenon_value& slice, const tenon_value& axes,
                            const tenon_value& starts, const tenon_value& whole);
  IntArray margins_of_index(const tenon_value& axis, const tenon_value& index,
                            const tenon_value& whole);

 protected:
  tenon_status status() const { return status_; }
  void set_status(tenon_status status) { status_ = status; }
  // Of the tensors seen; inputs are never empty (takes_shapes), so that it was a result.
  bool has_empty() const { return has_empty_; }

  tenon_ctx* ctx_;
  const char* op_;
  tenon_err* err_;

 private:
  static std::span<const int64_t> list_of(const tenon_value& value);
  static const tenon_tensor& first_of(const tenon_value& value);  // a tensor, or that of a list
  static IntArray array_of(std::span<const int64_t> values) {
    return {{values.begin(), values.end()}};
  }
  static Tensor dense(Tensor tensor);  // with the strides and storage of its shape
  Tensor describe(const tenon_tensor& tensor);
  bool can_prepare();
  Tensor count(const Tensor& indices, int64_t extent);
  Tensor widen(const tenon_tensor& index);  // int64, with one axis or more
  static Tensor in_front(Tensor tensor, int64_t axis, size_t count);  // axes from `axis` on

  tenon_status status_ = TENON_OK;
  bool has_empty_ = false;
};

}  // namespace ascend
