// SPDX-License-Identifier: Apache-2.0
#include "objects.hpp"

namespace ascend {

Objects::~Objects() {
  for (aclTensorList* list : lists_) acl.aclDestroyTensorList(list);  // with its tensors
  for (aclTensor* tensor : tensors_) acl.aclDestroyTensor(tensor);
  for (aclScalar* scalar : scalars_) acl.aclDestroyScalar(scalar);
  for (aclIntArray* array : int_arrays_) acl.aclDestroyIntArray(array);
  for (aclBoolArray* array : bool_arrays_) acl.aclDestroyBoolArray(array);
}

template <class T>
T* Objects::keep(T* object, std::vector<T*>& owner, const char* function) {
  if (object)
    owner.push_back(object);
  else if (!problem_)
    problem_ = function;
  return object;
}

aclTensor* Objects::create(const Tensor& t) {
  aclTensor* const made =
      acl.aclCreateTensor(t.shape.data(), t.shape.size(), acl_dtype(t.dtype), t.strides.data(), 0,
                          t.format, t.storage.data(), t.storage.size(), t.data);
  return keep(made, tensors_, "aclCreateTensor");
}

aclTensor* Objects::make(const Tensor& tensor) {
  aclTensor* const made = tensor.is_none ? nullptr : create(tensor);
  all_tensors_.push_back(made);
  return made;
}

aclTensorList* Objects::make(const TensorList& list) {
  const size_t first = tensors_.size(), count = list.tensors.size();
  for (const Tensor& tensor : list.tensors)
    if (!make(tensor)) return nullptr;
  aclTensorList* const made =
      keep(acl.aclCreateTensorList(tensors_.data() + first, count), lists_, "aclCreateTensorList");
  if (made) tensors_.resize(first);  // the list owns them
  return made;
}

aclScalar* Objects::make(const Scalar& scalar) {
  // The parameter is not const in CANN's header; the function copies the value.
  auto* const value = const_cast<unsigned char*>(scalar.bytes.data());
  return keep(acl.aclCreateScalar(value, acl_dtype(scalar.dtype)), scalars_, "aclCreateScalar");
}

aclIntArray* Objects::make(const IntArray& array) {
  return keep(acl.aclCreateIntArray(array.values.data(), array.values.size()), int_arrays_,
              "aclCreateIntArray");
}

aclBoolArray* Objects::make(const BoolArray& array) {
  return keep(acl.aclCreateBoolArray(array.values.data(), array.values.size()), bool_arrays_,
              "aclCreateBoolArray");
}

}  // namespace ascend
