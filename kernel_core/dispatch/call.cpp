// SPDX-License-Identifier: Apache-2.0
// The path of every call. The common case - all tensors alike and contiguous, one native kernel - is
// decided here by a few comparisons; everything else goes through the steps of call_general.
#include "kernel_core/dispatch/call.hpp"

#include <cstring>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/dispatch/layers.hpp"
#include "kernel_core/dispatch/registry.hpp"
#include "kernel_core/runtime/tensor_shape.hpp"

namespace tenon::core {
namespace {

bool same_shape_as(const tenon_tensor& a, const tenon_tensor& b) {
  if (a.ndim != b.ndim) return false;
  for (int32_t axis = 0; axis < a.ndim; ++axis)
    if (a.shape[axis] != b.shape[axis]) return false;
  return true;
}

// What the fast path wants of one more tensor.
bool is_like(const tenon_tensor& tensor, const tenon_tensor& first) {
  return tensor.dtype == first.dtype && tensor.device == first.device &&
         (tensor.flags & TENON_TENSOR_CONTIGUOUS) && same_shape_as(tensor, first);
}

constexpr uint32_t kFastParams = 4;

// Returns false, with nothing done, if the call needs call_general.
bool call_fast(Operator& op, const tenon_value* args, tenon_value* outs, tenon_err* err, tenon_status* status) {
  uint32_t nparams = op.def.nparams;
  if (nparams > kFastParams) return false;
  const tenon_tensor* first = nullptr;
  uint32_t scalars = 0;
  for (uint32_t i = 0; i < nparams; ++i) {
    if (args[i].tag == TENON_VALUE_TENSOR) {
      auto* tensor = static_cast<const tenon_tensor*>(args[i].v.p);
      if (!first) {
        if (!(tensor->flags & TENON_TENSOR_CONTIGUOUS)) return false;
        first = tensor;
      } else if (!is_like(*tensor, *first)) {
        return false;
      }
    } else if (args[i].tag >= TENON_VALUE_INT && args[i].tag <= TENON_VALUE_FLOAT) {
      ++scalars;
    } else {
      return false;
    }
  }
  if (!first) return false;
  int32_t dtype = first->dtype;
  if (scalars) {
    for (uint32_t i = 0; i < nparams; ++i)
      if (args[i].tag != TENON_VALUE_TENSOR && promote_weak(dtype, scalar_class(args[i].tag)) != dtype)
        return false;
  }
  if (op.def.compute == TENON_COMPUTE_PROMOTE_FLOAT && dtype_class(dtype) < DtypeClass::kFloating) return false;

  const Resolution* cell = op.cell(TENON_DEVICE_KIND(first->device), dtype);
  if (!cell || cell->route != Route::kNative) return false;
  if (!(op.def.dtype_mask >> dtype & 1)) return false;
  Device* device = find_device(first->device);

  int32_t out_dtype = output_dtype(op, dtype);
  TensorImpl* created = nullptr;
  if (outs[0].tag == TENON_VALUE_NONE) {
    *status = create_tensor(*device, out_dtype, first->ndim, first->shape, &created, err);
    if (*status != TENON_OK) return true;
    outs[0] = tensor_value(created);
  } else {
    auto* out = static_cast<const tenon_tensor*>(outs[0].v.p);
    if (out->dtype != out_dtype || out->device != first->device || !(out->flags & TENON_TENSOR_CONTIGUOUS) ||
        (out->flags & TENON_TENSOR_READONLY) || !same_shape_as(*out, *first))
      return false;
    // Element by element an output may be one of the inputs, but not a shifted view of one.
    for (uint32_t i = 0; i < nparams; ++i) {
      const tenon_tensor* tensor = as_tensor(args[i]);
      if (tensor && impl(tensor)->storage == impl(out)->storage && tensor->data != out->data) return false;
    }
    if (!(op.def.flags & TENON_OP_ELEMENTWISE)) return false;
  }

  tenon_ctx ctx(&op, *device, outs, 1);
  if (scalars == 0) {
    *status = invoke(*cell, ctx, args, nparams, outs, 1, err);
  } else {
    if (!(cell->traits & TENON_KERNEL_HOST_SCALARS)) {
      if (created) release(created), outs[0].tag = TENON_VALUE_NONE;
      return false;
    }
    HostScalar storage[kFastParams];
    tenon_value values[kFastParams];
    for (uint32_t i = 0; i < nparams; ++i) {
      values[i] = args[i];
      if (args[i].tag == TENON_VALUE_TENSOR) continue;
      storage[i].set(args[i], dtype, *device);
      values[i] = tensor_value(&storage[i].view);
    }
    *status = invoke(*cell, ctx, values, nparams, outs, 1, err);
  }
  count(cell->native_calls);
  if (*status != TENON_OK) [[unlikely]] {
    *status = kernel_result(op, *device, *status, err);
    if (created) release(created), outs[0].tag = TENON_VALUE_NONE;
  } else if (!created) {
    bump_version(impl(as_tensor(outs[0])));
  }
  return true;
}

tenon_status no_kernel(const Plan& plan) {
  std::string others;
  for (uint32_t kind = 0; kind < slots::device_kind_count(); ++kind)
    if (!kernels_for(plan.op, kind, plan.compute).empty())
      others += (others.empty() ? "" : ", ") + std::string(slots::device_kind_name(kind));
  return fail(plan.err, TENON_UNSUPPORTED, "[%s] no kernel for %s on %s, and no decomposition; %s%s",
              short_name(plan.op), dtype_name(plan.compute), plan.device->name,
              others.empty() ? "no loaded plugin has one for this dtype" : "devices that have one: ",
              others.c_str());
}

tenon_status make_views(Plan& plan, tenon_value* results) {
  for (uint32_t i = 0; i < plan.op.def.nouts; ++i) {
    const tenon_meta& meta = plan.metas[i];
    TensorImpl* result;
    if (meta.kind == TENON_META_VIEW) {
      tenon_tensor* base = meta.view_of < plan.op.def.nparams ? as_tensor(plan.args[meta.view_of]) : nullptr;
      if (!base)
        return fail(plan.err, TENON_INTERNAL, "[%s] its shape rule names argument %u as base, which is no tensor",
                    short_name(plan.op), meta.view_of);
      tenon_status status = check_view(*impl(base), meta.dtype, meta.ndim, meta.shape, meta.strides, meta.offset,
                                       plan.err);
      if (status != TENON_OK) return fail_rule(plan, status);  // rules may lie
      TENON_TRY(create_view(*impl(base), meta.dtype, meta.ndim, meta.shape, meta.strides, meta.offset, &result,
                            plan.err));
      set_base(result, impl(base));
      if (plan.op.def.flags & TENON_OP_NO_GRAD) result->flags &= static_cast<uint16_t>(~kFollowsBase);
    } else {
      TENON_TRY(create_tensor(*plan.device, meta.dtype, meta.ndim, meta.shape, &result, plan.err));
    }
    results[i] = tensor_value(result);
  }
  return TENON_OK;
}

// Views and meta tensors are made from their description alone.
tenon_status run_without_kernel(Plan& plan) {
  tenon_value results[kMaxOutputs] = {};
  tenon_status status = make_views(plan, results);
  if (status != TENON_OK) {
    drop_results(results, plan.op.def.nouts);
    return status;
  }
  return deliver(plan, results);
}

[[gnu::noinline]] tenon_status call_general(Operator& op, const tenon_value* args, tenon_value* outs,
                                            tenon_err* err) {
  Plan plan(op, args, outs, err);
  TENON_TRY(find_call_device(plan));
  if (op.def.compute != TENON_COMPUTE_OUTPUT) TENON_TRY(find_compute_dtype(plan));
  TENON_TRY(find_output_shapes(plan));
  if (op.def.compute == TENON_COMPUTE_OUTPUT) TENON_TRY(find_compute_dtype(plan));
  TENON_TRY(check_given_outputs(plan));

  bool on_meta = plan.device->id == TENON_DEVICE_META;
  if (on_meta && !plan.has_metas)
    return fail(err, TENON_UNSUPPORTED, "[%s] nothing but its data says the result's shape, and meta tensors have none; "
                "an operator of your own may get a rule, .shape",
                short_name(op));
  if (on_meta || op.def.flags & TENON_OP_VIEW) return run_without_kernel(plan);

  uint32_t kind = TENON_DEVICE_KIND(plan.device->id);
  const Resolution* cell = op.cell(kind, plan.compute);
  if (!cell) cell = resolve(op, kind, plan.compute);
  Route route = cell->route;
  if (route == Route::kChoose) {
    route = cell->otherwise;
    for (auto* candidate = cell->candidates; *candidate; ++candidate) {
      try {
        auto can_run = (*candidate)->kernel->def.can_run;
        if (can_run && !can_run(plan.values, op.def.nparams)) continue;
      } catch (...) {
        return fail_escaped(err, describe(*(*candidate)->kernel) + ", its can_run");
      }
      route = Route::kNative;
      cell = *candidate;
      break;
    }
  }
  switch (route) {
    case Route::kNative: return run_native(plan, *cell);
    case Route::kLowered: count(cell->lowered_calls); return run_lowered(plan);
    case Route::kHost: return run_on_host(plan, *cell);
    default: return no_kernel(plan);
  }
}

// Whether the device has one kernel for the whole of a composite.
bool has_own_kernel(Operator& op, const tenon_value* args, tenon_value* outs) {
  Plan plan(op, args, outs, nullptr);
  if (find_call_device(plan) != TENON_OK || plan.device->id == TENON_DEVICE_META) return false;
  if (find_compute_dtype(plan) != TENON_OK) return false;
  uint32_t kind = TENON_DEVICE_KIND(plan.device->id);
  const Resolution* cell = op.cell(kind, plan.compute);
  if (!cell) cell = resolve(op, kind, plan.compute);
  return cell->route == Route::kNative || cell->route == Route::kChoose;
}

// Composites are taken apart above the layers, which then see the parts.
tenon_status call_composite(Operator& op, tenon_value* args, tenon_value* outs, tenon_err* err) {
  uint8_t wanted = wanted_layers(args, op.def.nparams, outs, op.def.nouts, enabled_layers());
  bool want_parts = wanted & ~layer_table.kernels.load(std::memory_order_relaxed);
  if (!want_parts && op.can_infer() && has_own_kernel(op, args, outs))
    return wanted ? enter_layer(wanted, op, args, op.def.nparams, outs, op.def.nouts, err)
                  : call_general(op, args, outs, err);
  tenon_value results[kMaxOutputs] = {};
  tenon_status status = op.decompose(args, results, err);
  if (status != TENON_OK) {
    drop_results(results, op.def.nouts);
    return status;
  }
  for (uint32_t i = 0; i < op.def.nouts; ++i) {
    if (outs[i].tag == TENON_VALUE_NONE) {
      outs[i] = results[i];
      continue;
    }
    // Through the operator, so that layers see the write.
    tenon_value from[2] = {results[i], {}}, to[1] = {outs[i]};
    status = slots::op_call(materialize_operator(), from, 1, to, 1, err);
    drop_results(results + i, 1);
    if (status != TENON_OK) return status;
  }
  return TENON_OK;
}

}  // namespace

tenon_status call_kernel(Operator& op, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  if (op.tensor_params_only) {
    tenon_status status;
    if (call_fast(op, args, outs, err, &status)) return status;
  }
  return call_general(op, args, outs, err);
}

std::string describe(const Kernel& kernel) {
  return "[" + kernel.op + "] the kernel of plugin " + kernel.plugin + " for " + kernel.device_kind;
}

void drop_results(tenon_value* results, uint32_t count, const tenon_value* given) {
  for (uint32_t i = 0; i < count; ++i) {
    tenon_tensor* tensor = as_tensor(results[i]);
    if (tensor && !(given && tensor == as_tensor(given[i]))) release(impl(tensor));
  }
}

tenon_status kernel_result(const Operator& op, const Device& device, tenon_status status, tenon_err* err) {
  if (status == TENON_OK) return status;
  if (err && err->code == TENON_OK)
    return fail(err, TENON_INTERNAL, "[%s] the kernel on %s failed with code %d and no text", short_name(op),
                device.name, status);
  return err ? err->code : status;
}

namespace slots {

tenon_status op_call(const tenon_op* handle, tenon_value* args, uint32_t nargs, tenon_value* outs,
                     uint32_t nouts, tenon_err* err) {
  auto* op = const_cast<Operator*>(handle);
  if (!op || !op->is_defined) [[unlikely]]
    return core::fail(err, TENON_NOT_FOUND, "operator %s is not defined; was its plugin unloaded?",
                      op ? op->name.c_str() : "(NULL)");
  if (nouts != op->def.nouts) [[unlikely]]
    return core::fail(err, TENON_INVALID_ARGUMENT, "[%s] expected room for %u results, got %u", short_name(*op),
                      op->def.nouts, nouts);

  // Simple operators check their arguments on the fast path as they go; it hands over what it does not like.
  if (op->tensor_params_only && nargs == op->def.nparams) [[likely]] {
    uint8_t wanted = wanted_layers(args, nargs, outs, nouts, enabled_layers());
    if (wanted == 0) {
      tenon_status status;
      if (call_fast(*op, args, outs, err, &status)) return status;
    }
  }
  Arguments complete;
  TENON_TRY(complete_arguments(*op, args, nargs, complete, err));
  if (op->def.flags & TENON_OP_COMPOSITE) return call_composite(*op, complete.values, outs, err);
  uint8_t wanted = wanted_layers(complete.values, op->def.nparams, outs, nouts, enabled_layers());
  if (wanted) return enter_layer(wanted, *op, complete.values, op->def.nparams, outs, nouts, err);
  return call_general(*op, complete.values, outs, err);
}

tenon_status op_call_below(int32_t layer, const tenon_op* handle, tenon_value* args, uint32_t nargs,
                           tenon_value* outs, uint32_t nouts, tenon_err* err) {
  auto* op = const_cast<Operator*>(handle);
  if (nargs != op->def.nparams) [[unlikely]] {
    return core::fail(err, TENON_INVALID_ARGUMENT, "[%s] a layer must pass on all %u arguments, got %u",
                      short_name(*op), op->def.nparams, nargs);
  }
  uint8_t allowed = static_cast<uint8_t>(enabled_layers() & layer_table.after[layer]);
  if (allowed) {
    uint8_t wanted = wanted_layers(args, nargs, outs, nouts, allowed);
    if (wanted) return enter_layer(wanted, *op, args, nargs, outs, nouts, err);
  }
  return call_kernel(*op, args, outs, err);
}

}  // namespace slots
}  // namespace tenon::core
