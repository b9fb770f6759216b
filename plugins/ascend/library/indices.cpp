// SPDX-License-Identifier: Apache-2.0
// Parameters that other functions prepare, before the one that takes them.
#include "call.hpp"

namespace ascend {
namespace {

Function less_function{.name = "aclnnLtScalar"};
Function add_function{.name = "aclnnAdds"};
Function choose_function{.name = "aclnnSWhere"};
Function copy_function{.name = "aclnnInplaceCopy"};

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

aclTensor* Parameters::counted(const tenon_value& indices, const tenon_value& axis,
                               const tenon_value& tensor) {
  return count(describe(first_of(indices)), axis, tensor);
}

aclTensor* Parameters::counted_vector(const tenon_value& indices, const tenon_value& axis,
                                      const tenon_value& tensor) {
  Description d = describe(first_of(indices));
  d.shape = {first_of(indices).numel};
  return count(dense(d), axis, tensor);
}

// indices < 0 ? indices + extent : indices
aclTensor* Parameters::count(const Description& indices, const tenon_value& axis,
                             const tenon_value& tensor) {
  if (!can_prepare()) return nullptr;
  aclTensor* const given = create(indices);
  aclTensor* const is_back = scratch_of(indices.shape, TENON_DTYPE_BOOL);
  aclTensor* const moved = scratch_of(indices.shape, indices.dtype);
  aclTensor* const result = scratch_of(indices.shape, indices.dtype);
  if (status_) return nullptr;
  const int64_t extent = tenon_arg_tensor(&tensor)->shape[axis_of(axis, tensor)];
  Call compare(ctx_, op_, less_function, err_);
  status_ = compare.run(given, compare.scalar(int64_t{0}), is_back);
  if (status_) return nullptr;
  Call add(ctx_, op_, add_function, err_);
  aclScalar* const by = add.scalar(extent);
  status_ = add.run(given, by, add.scalar(int64_t{1}), moved);
  if (status_) return nullptr;
  Call choose(ctx_, op_, choose_function, err_);
  status_ = choose.run(is_back, moved, given, result);
  return status_ ? nullptr : result;
}

aclTensorList* Parameters::counted_list(const tenon_value& indices, const tenon_value& axis,
                                        const tenon_value& tensor) {
  aclTensor* const one = counted(indices, axis, tensor);
  return one ? list_of_last(1) : nullptr;
}

aclTensor* Parameters::copied(const tenon_value& from, const tenon_value& to) {
  if (!can_prepare()) return nullptr;
  Call copy(ctx_, op_, copy_function, err_);
  aclTensor* const target = copy.vector(to);
  status_ = copy.run(target, copy.vector(from));
  return tensor(to);
}

}  // namespace ascend
