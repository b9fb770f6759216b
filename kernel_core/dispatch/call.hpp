// SPDX-License-Identifier: Apache-2.0
// One operator call below all layers: dtype, shape, outputs, kernel.
#pragma once

#include <algorithm>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/dispatch/arguments.hpp"
#include "kernel_core/dispatch/context.hpp"
#include "kernel_core/dispatch/host_scalar.hpp"
#include "kernel_core/dispatch/operator.hpp"
#include "kernel_core/runtime/tensor.hpp"

namespace tenon::core {

// Run with complete arguments. outs[i]: NONE, or a tensor to write into.
tenon_status call_kernel(Operator& op, const tenon_value* args, tenon_value* outs, tenon_err* err);

// op_call of a defined operator with complete arguments.
tenon_status call_complete(const tenon_op* op, tenon_value* args, tenon_value* outs,
                           tenon_err* err);

// The view of `base`, the first argument, that the rule of an operator with `views_first` describes.
// False, with no view made: the call needs a kernel, or the view cannot be (`*status` is OK then), or
// the rule failed.
[[gnu::always_inline]] inline bool view_by_rule(const Operator& op, const tenon_value* args,
                                                tenon_tensor* base, tenon_tensor** view,
                                                tenon_err* err, tenon_status* status) {
  tenon_meta meta;
  *status = op.infer(args, &meta, err);
  return *status == TENON_OK && meta.kind == TENON_META_VIEW && meta.view_of == 0 &&
         slots::tensor_view_of(base, meta.dtype, meta.ndim, meta.shape, meta.strides, meta.offset,
                               view, nullptr) == TENON_OK;
}

// All that is decided about a call before a kernel sees it. Lives on the stack of call_general.
struct Plan {
  // Leaves the arrays uninitialised: they are 5 KB, of which a call fills a few words.
  Plan(Operator& op_in, const tenon_value* args_in, tenon_value* outs_in, tenon_err* err_in)
      : op(op_in), args(args_in), outs(outs_in), err(err_in), values(args_in) {}
  // `values`, to be changed.
  tenon_value* own_values() {
    if (values == args) std::copy_n(args, op.def.nparams, changed), values = changed;
    return changed;
  }

  Operator& op;
  const tenon_value* args;  // as called
  tenon_value* outs;        // as called
  tenon_err* err;

  Device* device = nullptr;
  int32_t compute = -1;       // compute dtype
  const tenon_value* values;  // args, or `changed`, with numbers given for tensors as host scalars
  tenon_value changed[kMaxParams];
  uint32_t scalar_count = 0;
  HostScalar scalars[8];
  tenon_meta metas[kMaxOutputs];  // unset for data-dependent operators
  bool has_metas = false;
};

// -- steps, in order ---------------------------------------------------------------------------
// The device and the compute dtype; also the shapes where the dtype is that of a result.
tenon_status plan_dtype(Plan& plan);
// All that a call decides before it chooses a kernel: device, compute dtype, shapes of the results, and that the
// outputs that the caller gave can hold them.
tenon_status plan_call(Plan& plan);
// Whether a result of this shape and dtype may be written into `out`.
tenon_status check_output_fits(const Plan& plan, const tenon_tensor& out, int32_t ndim,
                               const int64_t* shape, int32_t dtype);

// The native kernel that serves the call, or nullptr.
const Resolution* choose_native(const Plan& plan);
// Run one native kernel: inputs and outputs brought into the form that its traits ask for.
tenon_status run_native(Plan& plan, const Resolution& kernel);
// Run the operator's decomposition / on the host device.
tenon_status run_lowered(Plan& plan);
// A primitive that the device has no kernel for: made of others if that is possible, else on the host.
tenon_status run_primitive_lowered(Plan& plan, const Resolution& cell);
tenon_status run_on_host(Plan& plan, const Resolution& cell);

// -- tools shared by the steps -----------------------------------------------------------------
// What the operator's own rule said cannot be.
tenon_status fail_rule(const Plan& plan, tenon_status status);
// Broadcast shape of the BROADCAST arguments.
tenon_status broadcast_shapes(const Operator& op, const tenon_value* values, int32_t* ndim,
                              int64_t* shape, tenon_err* err);
// `tensor` seen with a broadcast shape: strides of 0 where it is repeated.
tenon_status expand_view(const TensorImpl& tensor, int32_t ndim, const int64_t* shape,
                         TensorRef* out, tenon_err* err);
// A contiguous copy / a copy of another dtype, by the operators registered for that.
tenon_status materialize(tenon_tensor* tensor, TensorRef* out, tenon_err* err);
tenon_status convert(tenon_tensor* tensor, int32_t dtype, TensorRef* out, tenon_err* err);
// Write `source` into `destination` (equal shape): any strides, any dtypes, any devices.
tenon_status copy_into(tenon_tensor* destination, tenon_tensor* source, tenon_err* err);
// Move results into outputs that the caller gave, or hand them over.
tenon_status deliver(const Plan& plan, tenon_value* results);
// Contiguous bytes between any two devices.
tenon_status copy_bytes(tenon_tensor* destination, const tenon_tensor* source, tenon_err* err);

// Release results of a call that failed; those that the caller gave are the caller's.
void drop_results(tenon_value* results, uint32_t count, const tenon_value* given = nullptr);

int32_t output_dtype(const Operator& op, int32_t compute);
// "one of float32, float64", "any dtype with arithmetic but bool": what an error says was expected.
std::string dtype_list(uint64_t mask);

// "[acme::scale] the kernel of plugin acme for cpu", for messages.
std::string describe(const Kernel& kernel);

// A kernel that failed without a word still gets one.
tenon_status kernel_result(const Operator& op, const Device& device, tenon_status status,
                           tenon_err* err);

// Memory that was allocated for other streams than the call's must outlive the work queued here,
// and all memory must if that work is being recorded.
void record_stream_use(Device& device, tenon_stream stream, const tenon_tensor* tensor);
void record_stream_use(const tenon_ctx& ctx, const tenon_value* values, uint32_t count);

inline tenon_status invoke(const Resolution& kernel, tenon_ctx& ctx, const tenon_value* args,
                           uint32_t nargs, tenon_value* outs, uint32_t nouts, tenon_err* err) {
  if (ctx.device.has_streams.load(std::memory_order_relaxed)) [[unlikely]] {
    record_stream_use(ctx, args, nargs);
    record_stream_use(ctx, outs, nouts);
  }
  try {
    return kernel.typed ? kernel.invoke(kernel.typed, &ctx, args, nargs, outs, nouts, err)
                        : kernel.boxed(&ctx, args, nargs, outs, nouts, err);
  } catch (...) {  // costs nothing until something is thrown
    return fail_escaped(err, describe(*kernel.kernel));
  }
}

}  // namespace tenon::core
