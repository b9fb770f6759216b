// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <numeric>
#include <string>

namespace kunlun {

bool find_function(Function& function) {
  function.address = find_operator_function(function.symbol);
  return function.address != nullptr;
}

bool takes_shapes(const tenon_value* args, uint32_t nargs) {
  for (uint32_t i = 0; i < nargs; ++i) {
    if (args[i].tag == TENON_VALUE_TENSOR && tenon_arg_tensor(&args[i])->numel == 0) return false;
    if (args[i].tag != TENON_VALUE_TENSORS) continue;
    for (uint32_t k = 0; k < tenon_arg_count(&args[i]); ++k)
      if (tenon_arg_tensors(&args[i])[k]->numel == 0) return false;
  }
  return true;
}

void Call::follow(tenon_stream stream) {
  if (const int error = xpu.wait(stream->stream)) status_ = fail_xpu(err_, "xpu_wait", error);
}

Context* Call::context() {
  if (status_ || device_->context) return device_->context;
  device_->context = xpu.create_context();
  if (!device_->context)
    status_ = tenon::fail_format(err_, TENON_INTERNAL,
                                 "[%s] kunlun: create_context returned nothing", op_);
  return device_->context;
}

const void* Call::typed(const tenon_tensor* tensor, int dtype) {
  // A binding that claims another dtype than the operator has would write past the end.
  if (tensor->dtype != dtype && !status_)
    status_ = tenon::fail_format(err_, TENON_INTERNAL,
                                 "[%s] kunlun: the binding of %s expects dtype %d, got %d", op_,
                                 function_.name, dtype, tensor->dtype);
  return tensor->data;
}

const std::vector<int64_t>& Call::shape(const tenon_value& tensor) {
  const tenon_tensor* t = tenon_arg_tensor(&tensor);
  std::vector<int64_t>& shape = vector();
  shape.assign(t->shape, t->shape + t->ndim);
  if (shape.empty()) shape.push_back(1);  // XDNN has no tensors without axes
  return shape;
}

const std::vector<int64_t>& Call::shape(const tenon_value& tensor, const tenon_value& like) {
  const tenon_tensor* t = tenon_arg_tensor(&tensor);
  const int32_t ndim = std::max(tenon_arg_tensor(&like)->ndim, 1);
  std::vector<int64_t>& shape = vector();
  shape.assign(static_cast<size_t>(ndim - t->ndim), 1);
  shape.insert(shape.end(), t->shape, t->shape + t->ndim);
  return shape;
}

const std::vector<int64_t>& Call::window(const tenon_value& weight) {
  const tenon_tensor* t = tenon_arg_tensor(&weight);
  std::vector<int64_t>& window = vector();
  if (t->ndim > 2) window.assign(t->shape + 2, t->shape + t->ndim);
  return window;
}

const std::vector<std::vector<int64_t>>& Call::shapes(const tenon_value& tensors) {
  for (uint32_t i = 0; i < tenon_arg_count(&tensors); ++i) {
    const tenon_tensor* t = tenon_arg_tensors(&tensors)[i];
    shapes_.emplace_back(t->shape, t->shape + t->ndim);
  }
  return shapes_;
}

const std::vector<int64_t>& Call::ints(const tenon_value& value) {
  return ints(value, tenon_arg_count(&value));
}

const std::vector<int64_t>& Call::ints(const tenon_value& value, size_t count) {
  const int64_t* values = tenon_arg_ints(&value);
  std::vector<int64_t>& copy = vector();
  copy.assign(values, values + tenon_arg_count(&value));
  if (copy.size() == 1) copy.assign(count, copy[0]);
  return copy;
}

const std::vector<int64_t>& Call::axes(const tenon_value& value, const tenon_value& tensor) {
  const int64_t ndim = std::max(tenon_arg_tensor(&tensor)->ndim, 1);
  std::vector<int64_t>& axes = vector();
  if (value.tag == TENON_VALUE_NONE) {
    axes.resize(static_cast<size_t>(ndim));
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }
  const int64_t* values = tenon_arg_ints(&value);
  for (uint32_t i = 0; i < tenon_arg_count(&value); ++i)
    axes.push_back(values[i] < 0 ? values[i] + ndim : values[i]);
  return axes;
}

int64_t Call::axis(const tenon_value& value, const tenon_value& tensor) const {
  const int64_t ndim = std::max(tenon_arg_tensor(&tensor)->ndim, 1);
  return value.v.i < 0 ? value.v.i + ndim : value.v.i;
}

void Call::refuse(int64_t value, size_t bytes) {
  if (!status_)
    status_ = tenon::fail_format(err_, TENON_UNSUPPORTED, "[%s] kunlun: %s takes %d bits, got %lld",
                                 op_, function_.name, static_cast<int>(bytes * 8),
                                 static_cast<long long>(value));
}

int64_t Call::dim(const tenon_value& tensor, int axis) const {
  const tenon_tensor* t = tenon_arg_tensor(&tensor);
  return t->shape[axis < 0 ? axis + t->ndim : axis];
}

tenon_status Call::fail(int error) {
  // Error_t of xpu/xdnn_types.h.
  static constexpr const char* kMeanings[] = {"success", "invalid parameter", "runtime error",
                                              "not enough workspace", "not implemented"};
  return tenon::fail_format(err_, TENON_INTERNAL, "[%s] > kunlun: %s returned %d (%s)", op_,
                            function_.name, error,
                            error > 0 && error < 5 ? kMeanings[error] : "unknown");
}

tenon_status Call::wait() {
  const int error = xpu.wait(nullptr);
  if (!error) return TENON_OK;
  const tenon_status status = fail_xpu(err_, "xpu_wait", error);
  tenon::add_context(err_, "[%s] > %s", op_, function_.name);
  return status;
}

}  // namespace kunlun
