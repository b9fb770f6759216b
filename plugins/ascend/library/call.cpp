// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <new>
#include <numeric>
#include <string>

namespace ascend {
namespace {

constexpr int kMaxNdim = 8;

}  // namespace

bool find_function(Function& function) {
  const std::string name = function.name;
  function.plan = find_operator_function(name + "GetWorkspaceSize");
  function.execute = find_operator_function(name);
  return function.plan && function.execute;
}

bool takes_shapes(const tenon_value* args, uint32_t nargs) {
  for (uint32_t i = 0; i < nargs; ++i) {
    if (args[i].tag != TENON_VALUE_TENSOR) continue;
    const tenon_tensor* tensor = tenon_arg_tensor(&args[i]);
    if (tensor->ndim > kMaxNdim || tensor->numel == 0) return false;
  }
  return true;
}

Call::~Call() {
  for (aclTensor* tensor : tensors_) acl.aclDestroyTensor(tensor);
  for (aclScalar* scalar : scalars_) acl.aclDestroyScalar(scalar);
  for (aclIntArray* array : arrays_) acl.aclDestroyIntArray(array);
}

template <class T>
T* Call::made(T* parameter, std::vector<T*>& owner, const char* function) {
  if (parameter)
    owner.push_back(parameter);
  else if (!status_)
    status_ = tenon::fail_format(err_, TENON_INTERNAL, "[%s] ascend: %s returned no object", op_,
                                 function);
  return parameter;
}

aclTensor* Call::tensor(const tenon_value& value) {
  if (status_ || value.tag == TENON_VALUE_NONE) return nullptr;
  const tenon_tensor* t = tenon_arg_tensor(&value);
  // Kernels get dense tensors, whose strides along axes of one element may be anything, negative too.
  int64_t strides[TENON_MAX_NDIM];
  int64_t step = 1;
  for (int32_t axis = t->ndim; axis-- > 0; step *= t->shape[axis]) strides[axis] = step;
  const auto ndim = static_cast<uint64_t>(t->ndim);
  return made(acl.aclCreateTensor(t->shape, ndim, acl_dtype(t->dtype), strides, 0, kFormatNd,
                                  t->shape, ndim, t->data),
              tensors_, "aclCreateTensor");
}

aclScalar* Call::scalar_of(const void* value, int dtype) {
  if (status_) return nullptr;
  // The parameter is not const in CANN's header; the function copies the value.
  return made(acl.aclCreateScalar(const_cast<void*>(value), acl_dtype(dtype)), scalars_,
              "aclCreateScalar");
}

aclScalar* Call::scalar(const tenon_value& value) {
  if (value.tag == TENON_VALUE_FLOAT) return scalar(value.v.f);
  return scalar(value.v.i);
}

aclIntArray* Call::int_array(const int64_t* values, uint64_t count) {
  if (status_) return nullptr;
  return made(acl.aclCreateIntArray(values, count), arrays_, "aclCreateIntArray");
}

aclIntArray* Call::ints(const tenon_value& value) {
  return int_array(tenon_arg_ints(&value), tenon_arg_count(&value));
}

aclIntArray* Call::axes(const tenon_value& value, const tenon_value& tensor) {
  if (value.tag != TENON_VALUE_NONE) return ints(value);
  int64_t all[kMaxNdim];
  const int32_t ndim = tenon_arg_tensor(&tensor)->ndim;
  std::iota(all, all + ndim, int64_t{0});
  return int_array(all, static_cast<uint64_t>(ndim));
}

tenon_status Call::fail(const char* phase, int error) {
  const std::string function = std::string(function_.name) + phase;
  const tenon_status status = fail_acl(err_, function.c_str(), error);
  tenon::add_context(err_, "[%s]", op_);
  return status;
}

tenon_status Call::execute(uint64_t workspace_bytes, aclOpExecutor* executor) {
  void* workspace = nullptr;
  if (workspace_bytes)
    if (const tenon_status status = host->scratch(ctx_, workspace_bytes, &workspace, err_))
      return status;
  using Execute = int (*)(void*, uint64_t, aclOpExecutor*, Stream);
  const auto queue = [&](Stream stream) {
    return reinterpret_cast<Execute>(function_.execute)(workspace, workspace_bytes, executor,
                                                        stream);
  };
  if (const tenon_stream stream = host->ctx_stream(ctx_)) {
    const int error = queue(stream->stream);
    return error ? fail("", error) : TENON_OK;
  }
  // Several threads may be on the synchronous stream; each waits for its own work.
  const std::lock_guard lock(device_->mutex);
  int error = queue(device_->stream);
  if (error) return fail("", error);
  error = acl.aclrtSynchronizeStream(device_->stream);
  return error ? fail(": aclrtSynchronizeStream", error) : TENON_OK;
}

}  // namespace ascend
