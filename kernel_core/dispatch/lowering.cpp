// SPDX-License-Identifier: Apache-2.0
// Calls that a device has no kernel for: by decomposition into operators it has, or on the host.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/dispatch/call.hpp"
#include "kernel_core/dispatch/fallback_policy.hpp"
#include "kernel_core/dispatch/layers.hpp"
#include "kernel_core/runtime/tensor_shape.hpp"

namespace tenon::core {
namespace {

// Host copies of device tensors, alive during one call.
class HostArguments {
 public:
  HostArguments(Device& host, tenon_err* err) : host_(host), err_(err) {}

  tenon_status bring(tenon_tensor* tensor, tenon_tensor** out) {
    TensorRef copy;
    TENON_TRY(copy_to_host(*impl(tensor), &copy));
    *out = copy.get();
    held_.push_back(std::move(copy));
    return TENON_OK;
  }

  uint64_t bytes() const { return bytes_; }

 private:
  // Whatever the strides, the bytes between the lowest and the highest element go over in one piece
  // and the copy is a view of them with the same strides.
  tenon_status copy_to_host(const TensorImpl& tensor, TensorRef* out) {
    Extent extent = extent_of(tensor.ndim, tensor.shape, tensor.strides);
    int64_t span = extent.high - extent.low + 1;
    TensorImpl* lowest;
    int64_t one = 1;
    TensorRef source, target;
    TENON_TRY(create_view(tensor, tensor.dtype, 1, &span, &one, tensor.numel ? extent.low : 0,
                          &lowest, err_));
    source = TensorRef(lowest);
    TENON_TRY(create_tensor(host_, tensor.dtype, 1, &span, target.receive(), err_));
    TENON_TRY(copy_bytes(target.get(), source.get(), err_));
    bytes_ += static_cast<uint64_t>(span) * dtype_size(tensor.dtype);
    return create_view(*target.get(), tensor.dtype, tensor.ndim, tensor.shape, tensor.strides,
                       tensor.numel ? -extent.low : 0, out->receive(), err_);
  }

  Device& host_;
  tenon_err* err_;
  std::vector<TensorRef> held_;
  uint64_t bytes_ = 0;
};

// Write a host tensor into a device tensor of any strides, without help from device kernels.
tenon_status write_back(Device& host, tenon_tensor* destination, tenon_tensor* source,
                        uint64_t* bytes, tenon_err* err) {
  *bytes += static_cast<uint64_t>(source->numel) * dtype_size(source->dtype);
  if (destination->flags & TENON_TENSOR_CONTIGUOUS) return copy_into(destination, source, err);
  if (destination->numel == 0) return TENON_OK;
  // What lies between the elements must survive: fetch the span, change it, send it back.
  const TensorImpl& target = *impl(destination);
  Extent extent = extent_of(target.ndim, target.shape, target.strides);
  int64_t span = extent.high - extent.low + 1, one = 1;
  TensorRef device_span, host_span, view;
  TENON_TRY(
      create_view(target, target.dtype, 1, &span, &one, extent.low, device_span.receive(), err));
  TENON_TRY(create_tensor(host, target.dtype, 1, &span, host_span.receive(), err));
  TENON_TRY(copy_bytes(host_span.get(), device_span.get(), err));
  TENON_TRY(create_view(*host_span.get(), target.dtype, target.ndim, target.shape, target.strides,
                        -extent.low, view.receive(), err));
  TENON_TRY(copy_into(view.get(), source, err));
  return copy_bytes(device_span.get(), host_span.get(), err);
}

// One result of a host run, as the caller wants it: written into its tensor, or new on the device.
tenon_status return_result(const Plan& plan, Device& host, uint32_t index, tenon_tensor* result,
                           uint64_t* bytes) {
  if (tenon_tensor* given = as_tensor(plan.outs[index])) {
    TENON_TRY(check_output_fits(plan, *given, result->ndim, result->shape, result->dtype));
    TENON_TRY(write_back(host, given, result, bytes, plan.err));
    bump_version(impl(given));
    return TENON_OK;
  }
  TensorRef created;
  TENON_TRY(create_tensor(*plan.device, result->dtype, result->ndim, result->shape,
                          created.receive(), plan.err));
  TENON_TRY(write_back(host, created.get(), result, bytes, plan.err));
  plan.outs[index] = boxed(created.take());
  return TENON_OK;
}

struct RandomOrigin {
  explicit RandomOrigin(Device* device) : saved(random_origin) {
    if (!saved) random_origin = device;
  }
  ~RandomOrigin() { random_origin = saved; }
  Device* saved;
};

}  // namespace

namespace {

// A decomposition may give an argument back, such as the real part of a real tensor; a new result has
// memory of its own, so that a write into it leaves the argument alone.
tenon_status unshare(const Plan& plan, const tenon_value* args, tenon_value* results) {
  for (uint32_t i = 0; i < plan.op.def.nouts; ++i) {
    tenon_tensor* result = as_tensor(results[i]);
    if (!result || as_tensor(plan.outs[i])) continue;
    for (uint32_t k = 0; k < plan.op.def.nparams; ++k) {
      const tenon_tensor* arg = as_tensor(args[k]);
      const bool shares = arg && impl(arg)->storage && impl(arg)->storage == impl(result)->storage;
      if (!shares) continue;
      TensorRef copy;
      TENON_TRY(materialize(result, &copy, plan.err));
      slots::tensor_release(result);
      results[i] = boxed(copy.take());
      break;
    }
  }
  return TENON_OK;
}

}  // namespace

tenon_status run_lowered(Plan& plan) {
  LayersOff below;
  tenon_value results[kMaxOutputs] = {}, args[kMaxParams];
  // Nothing but the strided copy can write into strided memory: it gets the output to pass on.
  bool passes_output = plan.op.def.flags & (TENON_OP_MATERIALIZE | TENON_OP_STRIDED);
  if (passes_output) results[0] = plan.outs[0];
  // The decomposition sees numbers as numbers: they stay weak in its own calls. What makes tensors
  // makes them on the call's device, also where only an output says which that is.
  std::copy_n(plan.args, plan.op.def.nparams, args);
  for (uint32_t i = 0; i < plan.op.def.nparams && plan.op.def.compute == TENON_COMPUTE_OUTPUT; ++i)
    if (plan.op.def.params[i].kind == TENON_PARAM_DEVICE) args[i] = boxed_device(plan.device->id);
  tenon_status status = plan.op.decompose(args, results, plan.err);
  if (status != TENON_OK) {
    add_context(plan.err, "[%s] decomposed on %s", short_name(plan.op), plan.device->name);
    drop_results(results, plan.op.def.nouts, plan.outs);
    return status;
  }
  status = unshare(plan, args, results);
  if (status != TENON_OK) {
    drop_results(results, plan.op.def.nouts, plan.outs);
    return status;
  }
  return deliver(plan, results);
}

tenon_status run_primitive_lowered(Plan& plan, const Resolution& cell) {
  if (plan.device->id == slots::device_host()) return run_lowered(plan);
  tenon_err tried;  // the first failure stays in an error, and this one may be none
  tenon_err* const err = std::exchange(plan.err, &tried);
  const tenon_status status = run_lowered(plan);
  plan.err = err;
  if (status == TENON_UNSUPPORTED) return run_on_host(plan, cell);
  if (status != TENON_OK && err && err->code == TENON_OK) *err = tried;
  return status;
}

tenon_status run_on_host(Plan& plan, const Resolution& cell) {
  Operator& op = plan.op;
  Device* host = find_device(slots::device_host());
  if (!host)
    return fail(plan.err, TENON_UNAVAILABLE, "[%s] no host device is loaded", short_name(op));
  TENON_TRY(permit_fallback(op, *plan.device, plan.compute, plan.err));

  LayersOff below;
  RandomOrigin origin(plan.device);
  HostArguments copies(*host, plan.err);
  tenon_value args[kMaxParams];
  std::vector<std::vector<tenon_tensor*>> lists;
  for (uint32_t i = 0; i < op.def.nparams; ++i) {
    args[i] = plan.args[i];
    if (tenon_tensor* tensor = as_tensor(args[i])) {
      tenon_tensor* copy = nullptr;
      TENON_TRY(copies.bring(tensor, &copy));
      args[i] = boxed(copy);
    } else if (args[i].tag == TENON_VALUE_TENSORS) {
      auto* list = static_cast<tenon_tensor* const*>(args[i].v.p);
      auto& copied = lists.emplace_back(list, list + args[i].aux);
      for (tenon_tensor*& tensor : copied)
        if (tensor) TENON_TRY(copies.bring(tensor, &tensor));
      args[i].v.p = copied.data();
    } else if (args[i].tag == TENON_VALUE_DEVICE && op.def.compute == TENON_COMPUTE_OUTPUT) {
      args[i].v.i = host->id;
    }
  }
  tenon_value results[kMaxOutputs] = {};
  tenon_status status = slots::op_call(&op, args, op.def.nparams, results, op.def.nouts, plan.err);
  uint64_t bytes = copies.bytes();
  for (uint32_t i = 0; i < op.def.nouts && status == TENON_OK; ++i)
    status = return_result(plan, *host, i, as_tensor(results[i]), &bytes);
  drop_results(results, op.def.nouts);
  count(cell.host_calls);
  count(cell.host_bytes, bytes);
  if (status != TENON_OK)
    add_context(plan.err, "[%s] on the host for %s", short_name(op), plan.device->name);
  return status;
}

}  // namespace tenon::core
