// SPDX-License-Identifier: Apache-2.0
#include "operators.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace tenon::autograd {
namespace {

// An operator that is looked up at its first call: this plugin may start before the one that
// defines it.
class LazyOperator {
 public:
  constexpr explicit LazyOperator(const char* name, uint32_t flag = 0) : name_(name), flag_(flag) {}

  tenon_status call(tenon_value* args, uint32_t nargs, tenon_value* out, tenon_err* err) {
    const tenon_op* op = op_.load(std::memory_order_relaxed);
    if (!op) [[unlikely]] {
      op = find();
      if (!op)
        return fail_format(err, TENON_NOT_FOUND,
                           "autograd needs the operator `%s`; load the plugin standard_ops", name_);
      op_.store(op, std::memory_order_relaxed);
    }
    return host->op_call(op, args, nargs, out, 1, err);
  }
  tenon_status call_new(tenon_value* args, uint32_t nargs, Tensor* out, tenon_err* err) {
    tenon_value result{};
    TENON_TRY(call(args, nargs, &result, err));
    *out = Tensor::adopt(as_tensor(result));
    return TENON_OK;
  }

 private:
  // By what it is for, where operators are marked so; else by name.
  const tenon_op* find() const {
    if (!flag_) return host->op_find(name_);
    for (uint32_t id = 0; id < host->op_count(); ++id) {
      const tenon_op* op = host->op_at(id);
      if (op && host->op_def(op)->flags & flag_) return op;
    }
    return nullptr;
  }

  const char* name_;
  uint32_t flag_;
  std::atomic<const tenon_op*> op_{nullptr};
};

constinit LazyOperator add_operator("add");
constinit LazyOperator sum_operator("sum");
constinit LazyOperator reshape_operator("reshape");
constinit LazyOperator full_operator("full");
constinit LazyOperator conjugate_operator("conj");
constinit LazyOperator convert_operator("cast", TENON_OP_CONVERT);
constinit LazyOperator materialize_operator("clone", TENON_OP_MATERIALIZE);

// Of a few elements on the host a call costs many times what it does: those are done here, unless a
// layer wants to see every call.
constexpr uint64_t kFewBytes = 1024;

// A dense copy, where that is no call; else `*out` stays empty.
tenon_status clone_few(const tenon_tensor& x, Tensor* out, tenon_err* err) {
  uint64_t bytes = static_cast<uint64_t>(x.numel) * host->dtype_size(x.dtype);
  bool is_seen = (x.layers || follows_base(x)) && is_recording();
  if (is_seen || bytes > kFewBytes || !(x.flags & TENON_TENSOR_CONTIGUOUS) ||
      x.device != host->device_host() || host->layers_every_call() != 0)
    return TENON_OK;
  tenon_tensor* copy;
  TENON_TRY(host->tensor_create(x.device, x.dtype, x.ndim, x.shape, &copy, err));
  if (bytes) std::memcpy(copy->data, x.data, bytes);
  *out = Tensor::adopt(copy);
  return TENON_OK;
}

// Likewise a float32 or float64 tensor of one value.
tenon_status full_few(int32_t ndim, const int64_t* shape, double value, int32_t dtype,
                      tenon_device_id device, Tensor* out, tenon_err* err) {
  bool is_known = dtype == TENON_DTYPE_F32 || dtype == TENON_DTYPE_F64;
  uint64_t room = kFewBytes / sizeof(double);  // elements
  for (int32_t axis = 0; axis < ndim; ++axis)
    room = shape[axis] > 1 ? room / static_cast<uint64_t>(shape[axis]) : room;
  if (!is_known || room == 0 || device != host->device_host() || host->layers_every_call() != 0)
    return TENON_OK;
  tenon_tensor* made;
  TENON_TRY(host->tensor_create(device, dtype, ndim, shape, &made, err));
  if (dtype == TENON_DTYPE_F32)
    std::fill_n(static_cast<float*>(made->data), made->numel, static_cast<float>(value));
  else
    std::fill_n(static_cast<double*>(made->data), made->numel, value);
  *out = Tensor::adopt(made);
  return TENON_OK;
}

}  // namespace

tenon_status add(const Tensor& x, const Tensor& y, Tensor* out, tenon_err* err) {
  tenon_value args[] = {boxed(x.get()), boxed(y.get())};
  return add_operator.call_new(args, 2, out, err);
}

tenon_status add_into(tenon_tensor* sum, const Tensor& x, tenon_err* err) {
  tenon_value args[] = {boxed(sum), boxed(x.get())};
  tenon_value out = boxed(sum);
  return add_operator.call(args, 2, &out, err);
}

tenon_status sum(const Tensor& x, const int64_t* axes, uint32_t count, bool keepdim, Tensor* out,
                 tenon_err* err) {
  tenon_value args[] = {boxed(x.get()), boxed(axes, count), boxed(keepdim)};
  return sum_operator.call_new(args, 3, out, err);
}

tenon_status reshape(const Tensor& x, int32_t ndim, const int64_t* shape, Tensor* out,
                     tenon_err* err) {
  tenon_value args[] = {boxed(x.get()), boxed(shape, static_cast<uint32_t>(ndim))};
  return reshape_operator.call_new(args, 2, out, err);
}

tenon_status conjugate(const Tensor& x, Tensor* out, tenon_err* err) {
  tenon_value args[] = {boxed(x.get())};
  return conjugate_operator.call_new(args, 1, out, err);
}

tenon_status convert(const Tensor& x, int32_t dtype, Tensor* out, tenon_err* err) {
  tenon_value args[] = {boxed(x.get()), boxed_dtype(dtype)};
  return convert_operator.call_new(args, 2, out, err);
}

tenon_status clone(const Tensor& x, Tensor* out, tenon_err* err) {
  *out = {};
  TENON_TRY(clone_few(*x.get(), out, err));
  if (*out) return TENON_OK;
  tenon_value args[] = {boxed(x.get())};
  return materialize_operator.call_new(args, 1, out, err);
}

tenon_status copy_into(tenon_tensor* destination, const Tensor& x, tenon_err* err) {
  tenon_value args[] = {boxed(x.get())};
  tenon_value out = boxed(destination);
  return materialize_operator.call(args, 1, &out, err);
}

tenon_status full(int32_t ndim, const int64_t* shape, double value, int32_t dtype,
                  tenon_device_id device, Tensor* out, tenon_err* err) {
  *out = {};
  TENON_TRY(full_few(ndim, shape, value, dtype, device, out, err));
  if (*out) return TENON_OK;
  tenon_value args[] = {boxed(shape, static_cast<uint32_t>(ndim)), boxed(value), boxed_dtype(dtype),
                        boxed_device(device)};
  return full_operator.call_new(args, 4, out, err);
}

tenon_status fill(tenon_tensor* destination, double value, tenon_err* err) {
  tenon_value args[] = {boxed(destination->shape, static_cast<uint32_t>(destination->ndim)),
                        boxed(value), boxed_dtype(destination->dtype),
                        boxed_device(destination->device)};
  tenon_value out = boxed(destination);
  return full_operator.call(args, 4, &out, err);
}

tenon_status alias(tenon_tensor* tensor, Tensor* out, tenon_err* err) {
  tenon_tensor* view;
  if (tensor->flags & TENON_TENSOR_COMPOSED) [[unlikely]] {
    TENON_TRY(alias_composed(tensor, &view, err));
    *out = Tensor::adopt(view);
    return TENON_OK;
  }
  TENON_TRY(host->tensor_view(tensor, tensor->dtype, tensor->ndim, tensor->shape, tensor->strides,
                              0, &view, err));
  *out = Tensor::adopt(view);
  return TENON_OK;
}

}  // namespace tenon::autograd
