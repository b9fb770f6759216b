// SPDX-License-Identifier: Apache-2.0
// Parameters that other functions prepare, before the one that takes them.
#include "call.hpp"

namespace ascend {
namespace {

Function less_function{.name = "aclnnLtScalar"};
Function add_function{.name = "aclnnAdds"};
Function choose_function{.name = "aclnnSWhere"};
// It may copy from device to device inside (hicann/ops-math, conversion/tensor_move), so that it is planned each time.
Function copy_function{.name = "aclnnInplaceCopy", .is_reusable = false};

bool find_all() {
  bool found = true;
  for (Function* one : {&less_function, &add_function, &choose_function, &copy_function})
    found &= find_function(*one);
  return found;
}

}  // namespace

bool Parameters::can_prepare() {
  static const bool has_all = find_all();
  if (!has_all && !status_)
    status_ =
        tenon::fail_format(err_, TENON_UNSUPPORTED,
                           "[%s] ascend: this version of CANN lacks aclnnLtScalar, aclnnAdds, "
                           "aclnnSWhere or aclnnInplaceCopy",
                           op_);
  return !status_;
}

Tensor Parameters::counted(const tenon_value& indices, const tenon_value& axis,
                               const tenon_value& tensor) {
  return count(describe(first_of(indices)), axis, tensor);
}

Tensor Parameters::counted_vector(const tenon_value& indices, const tenon_value& axis,
                                  const tenon_value& tensor) {
  Tensor d = describe(first_of(indices));
  d.shape = {first_of(indices).numel};
  return count(dense(d), axis, tensor);
}

// indices < 0 ? indices + extent : indices
Tensor Parameters::count(const Tensor& indices, const tenon_value& axis,
                         const tenon_value& tensor) {
  const Tensor is_back = scratch_of(indices.shape, TENON_DTYPE_BOOL);
  const Tensor moved = scratch_of(indices.shape, indices.dtype);
  Tensor result = scratch_of(indices.shape, indices.dtype);
  if (!can_prepare()) return result;
  const int64_t extent = tenon_arg_tensor(&tensor)->shape[axis_of(axis, tensor)];
  Call compare(ctx_, op_, less_function, err_);
  status_ = compare.run(indices, compare.scalar(int64_t{0}), is_back);
  if (status_) return result;
  Call add(ctx_, op_, add_function, err_);
  status_ = add.run(indices, add.scalar(extent), add.scalar(int64_t{1}), moved);
  if (status_) return result;
  Call choose(ctx_, op_, choose_function, err_);
  status_ = choose.run(is_back, moved, indices, result);
  return result;
}

TensorList Parameters::counted_list(const tenon_value& indices, const tenon_value& axis,
                                    const tenon_value& tensor) {
  return {{counted(indices, axis, tensor)}};
}

Tensor Parameters::copied(const tenon_value& from, const tenon_value& to) {
  if (can_prepare()) {
    Call copy(ctx_, op_, copy_function, err_);
    status_ = copy.run(copy.vector(to), copy.vector(from));
  }
  return tensor(to);
}

}  // namespace ascend
