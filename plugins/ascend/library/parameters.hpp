// SPDX-License-Identifier: Apache-2.0
// The parameters of aclnn functions, made from the arguments and results of a kernel. Each method is a kind of
// parameter in bindings/*.yaml: those before the first heading are docs/bindings.md's, the files declare the others.
#pragma once

#include <tenon/unbox.h>

#include <span>
#include <vector>

#include "runtime/device.hpp"

namespace ascend {

// Owns what it made. After a failure the methods return nullptr, and status() is the failure.
class Parameters {
 public:
  Parameters(tenon_ctx* ctx, const char* op, tenon_err* err) : ctx_(ctx), op_(op), err_(err) {}
  ~Parameters();
  Parameters(const Parameters&) = delete;

  aclTensor* tensor(const tenon_value& value);  // NONE: nullptr
  aclScalar* scalar(int64_t value) { return scalar_of(&value, TENON_DTYPE_I64); }
  aclScalar* scalar(double value) { return scalar_of(&value, TENON_DTYPE_F64); }
  aclScalar* scalar(const tenon_value& value);
  aclIntArray* ints(const tenon_value& value) { return int_array(list_of(value)); }
  aclIntArray* axes(const tenon_value& value, const tenon_value& tensor);  // NONE: all axes
  int dtype(const tenon_value& value) {  // a dtype, or that of a tensor
    return acl_dtype(value.tag == TENON_VALUE_DTYPE ? static_cast<int>(value.v.i)
                                                    : tenon_arg_tensor(&value)->dtype);
  }

  // ---- tensors seen otherwise ----
  aclTensor* no_tensor() { return nullptr; }
  // Any view; strides are not negative.
  aclTensor* view(int dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, void* data);
  // In the format that names its axes: NC, NCL, NCHW or NCDHW.
  aclTensor* image(const tenon_value& value);
  aclTensor* transposed(const tenon_value& value);  // last two axes exchanged
  aclTensor* matrix(const tenon_value& value);      // all axes but the last as one
  aclTensor* vector(const tenon_value& value);      // all axes as one
  // With a last axis of length 1; of a list, the first.
  aclTensor* coordinates(const tenon_value& value);
  // With an axis of length 1 where `like` has that axis.
  aclTensor* with_axis(const tenon_value& value, const tenon_value& axis, const tenon_value& like);
  // With all axes in the place of one axis of `like` merged, whose other axes it has.
  aclTensor* merged(const tenon_value& value, const tenon_value& axis, const tenon_value& like);
  aclTensorList* tensors(const tenon_value& list);

  // ---- tensors that other functions prepare (indices.cpp) ----
  // Indices along an axis of `tensor`, none of which counts from the end.
  aclTensor* counted(const tenon_value& indices, const tenon_value& axis,
                     const tenon_value& tensor);
  aclTensor* counted_vector(const tenon_value& indices, const tenon_value& axis,
                            const tenon_value& tensor);
  aclTensorList* counted_list(const tenon_value& indices, const tenon_value& axis,
                              const tenon_value& tensor);
  // `to` with the elements of `from`, for functions that change their argument.
  aclTensor* copied(const tenon_value& from, const tenon_value& to);

  // ---- results that the operator does not have, in memory that lives until the call ends ----
  aclTensor* scratch(const tenon_value& like);            // shape and dtype of another
  aclTensor* scratch_indices(const tenon_value& like);    // its shape, in int64
  aclTensor* scratch_rows(const tenon_value& like);       // one float32 for each row
  aclTensor* scratch_channels(const tenon_value& image);  // one float32 for each channel
  // As many elements as `like` has, along one axis.
  aclTensor* scratch_vector(const tenon_value& like, const tenon_value& dtype);
  // One element for each group of channels of each sample.
  aclTensor* scratch_groups(const tenon_value& image, const tenon_value& groups);

  // ---- numbers ----
  // A number as a tensor's dtype holds it: integers are cut off, booleans are whether it is zero.
  aclScalar* scalar_as(const tenon_value& value, const tenon_value& tensor);
  aclScalar* given_scalar(const tenon_value& value) { return scalar(value); }
  aclScalar* float_scalar(double value);
  aclScalar* int32_scalar(const tenon_value& value);
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
  aclBoolArray* flags(int64_t first, int64_t second, int64_t third);

  // ---- lists of numbers ----
  aclIntArray* int_list(int64_t one) { return int_array(std::vector{one}); }
  // One number for each of two axes; a list of one is for both.
  aclIntArray* pair(int64_t both) { return int_array(std::vector{both, both}); }
  aclIntArray* pair(const tenon_value& value) {
    return list_of(value).size() == 1 ? pair(list_of(value)[0]) : ints(value);
  }
  aclIntArray* pair(const tenon_value& value, const tenon_value& otherwise) {
    return pair(value.tag == TENON_VALUE_NONE ? otherwise : value);
  }
  aclIntArray* extent(const tenon_value& tensor, int64_t axis);
  aclIntArray* last_extents(const tenon_value& count, const tenon_value& tensor);
  aclIntArray* margins(const tenon_value& padding);  // the pairs of the last axis first
  // What lies before and behind a slice of `whole`, or a place on one of its axes.
  aclIntArray* margins_of_slice(const tenon_value& slice, const tenon_value& axes,
                                const tenon_value& starts, const tenon_value& whole);
  aclIntArray* margins_of_index(const tenon_value& axis, const tenon_value& index,
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
  struct Description {
    int dtype;  // TENON_DTYPE_
    int format;
    std::vector<int64_t> shape, strides;
    void* data;
    std::vector<int64_t> storage = shape;  // the axes of the memory that a view is of
  };
  static std::span<const int64_t> list_of(const tenon_value& value);
  static const tenon_tensor& first_of(const tenon_value& value);  // a tensor, or that of a list
  static Description dense(Description description);  // with the strides and storage of its shape
  Description describe(const tenon_tensor& tensor);
  aclTensor* create(const Description& description);
  aclTensor* scratch_of(std::vector<int64_t> shape, int dtype);
  aclTensorList* list_of_last(size_t count);  // of the tensors made
  bool can_prepare();
  aclTensor* count(const Description& indices, const tenon_value& axis, const tenon_value& tensor);
  aclScalar* scalar_of(const void* value, int dtype);
  aclIntArray* int_array(std::span<const int64_t> values);
  template <class T>
  T* made(T* parameter, std::vector<T*>& owner, const char* function);

  tenon_status status_ = TENON_OK;
  bool has_empty_ = false;
  std::vector<aclTensor*> tensors_;
  std::vector<aclTensorList*> lists_;
  std::vector<aclScalar*> scalars_;
  std::vector<aclIntArray*> int_arrays_;
  std::vector<aclBoolArray*> bool_arrays_;
};

}  // namespace ascend
