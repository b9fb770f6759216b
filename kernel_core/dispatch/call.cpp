// SPDX-License-Identifier: Apache-2.0
// The path of every call. The common case - all tensors alike and contiguous, one native kernel -
// is decided here by a few comparisons; everything else goes through the steps of call_general.
#include "kernel_core/dispatch/call.hpp"

#include <cstddef>
#include <cstring>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/dispatch/layers.hpp"
#include "kernel_core/dispatch/registry.hpp"
#include "kernel_core/runtime/tensor_shape.hpp"

namespace tenon::core {
namespace {

bool is_like(const tenon_tensor& tensor, const tenon_tensor& first) {
  return tensor.flags & TENON_TENSOR_CONTIGUOUS && tensor.dtype == first.dtype &&
         tensor.device == first.device && same_shape(tensor, first.ndim, first.shape);
}

// What one look at the arguments of an operator finds that takes tensors, or numbers in their
// place.
struct Operands {
  const tenon_tensor* first = nullptr;
  bool has_numbers = false;
  LayerSet layers = 0;  // that some tensor carries
  uint16_t flags = 0;
  void add(const tenon_tensor& tensor) { layers |= tensor.layers, flags |= tensor.flags; }
};

// False: there is no tensor, or something that such an operator does not take.
[[gnu::always_inline]] inline bool look_at(const tenon_value* args, uint32_t nargs,
                                           Operands& seen) {
  for (uint32_t i = 0; i < nargs; ++i) {
    if (const tenon_tensor* tensor = as_tensor(args[i])) {
      if (!seen.first) seen.first = tensor;
      seen.add(*tensor);
    } else {
      if (!is_scalar_tag(args[i].tag)) return false;
      seen.has_numbers = true;
    }
  }
  return seen.first != nullptr;
}

constexpr uint32_t kFastParams = 4;

// Operands of one dtype, device and shape, contiguous. Returns false, with nothing done, if the
// call needs call_general.
bool call_fast(Operator& op, const Operands& seen, const tenon_value* args, tenon_value* outs,
               tenon_err* err, tenon_status* status) {
  uint32_t nparams = op.def.nparams;
  const tenon_tensor& first = *seen.first;
  if (nparams > kFastParams || !(first.flags & TENON_TENSOR_CONTIGUOUS)) return false;
  for (uint32_t i = 0; i < nparams; ++i)
    if (const tenon_tensor* tensor = as_tensor(args[i]);
        tensor && tensor != &first && !is_like(*tensor, first))
      return false;
  int32_t dtype = first.dtype;
  if (op.def.compute == TENON_COMPUTE_PROMOTE_FLOAT && dtype_class(dtype) < DtypeClass::kFloating)
    return false;
  const Resolution* cell = op.cell(TENON_DEVICE_KIND(first.device), dtype);
  if (!cell || cell->route != Route::kNative) return false;
  if (!(op.def.dtype_mask >> dtype & 1)) return false;
  Device* device = find_device(first.device);
  HostScalar scalars[kFastParams];
  tenon_value values[kFastParams];
  if (seen.has_numbers) {
    if (!(cell->traits & TENON_KERNEL_HOST_SCALARS) || is_storage(dtype)) return false;
    for (uint32_t i = 0; i < nparams; ++i) {
      values[i] = args[i];
      if (args[i].tag == TENON_VALUE_TENSOR) continue;
      if (args[i].tag == TENON_VALUE_FLOAT) {
        if (dtype_class(dtype) < DtypeClass::kFloating) return false;
      } else if (promote_weak(dtype, scalar_class(args[i].tag)) != dtype ||
                 !holds_number(dtype, args[i])) {
        return false;
      }
      scalars[i].set(args[i], dtype, *device);
      values[i] = boxed(&scalars[i].view);
    }
  }

  int32_t out_dtype = op.def.out_dtype == TENON_OUT_COMPUTE ? dtype : output_dtype(op, dtype);
  TensorImpl* created = nullptr;
  if (outs[0].tag == TENON_VALUE_NONE) {
    *status = create_tensor(*device, out_dtype, first.ndim, first.shape, &created, err);
    if (*status != TENON_OK) return true;
    outs[0] = boxed(created);
  } else {
    const tenon_tensor* out = as_tensor(outs[0]);
    constexpr uint16_t kLayout = TENON_TENSOR_CONTIGUOUS | TENON_TENSOR_READONLY;
    if (!out || out->dtype != out_dtype || out->device != first.device ||
        (out->flags & kLayout) != TENON_TENSOR_CONTIGUOUS ||
        !same_shape(*out, first.ndim, first.shape))
      return false;
    // Element by element an output may be one of the inputs, but not a shifted view of one.
    for (uint32_t i = 0; i < nparams; ++i) {
      const tenon_tensor* tensor = as_tensor(args[i]);
      if (tensor && impl(tensor)->storage == impl(out)->storage && tensor->data != out->data)
        return false;
    }
    if (!(op.def.flags & TENON_OP_ELEMENTWISE)) return false;
  }

  tenon_ctx ctx(&op, *device, outs, 1);
  *status = invoke(*cell, ctx, seen.has_numbers ? values : args, nparams, outs, 1, err);
  count(cell->native_calls);
  if (*status != TENON_OK) [[unlikely]] {
    *status = kernel_result(op, *device, *status, err);
    if (created) release(created), outs[0].tag = TENON_VALUE_NONE;
  } else if (!created) {
    bump_version(impl(as_tensor(outs[0])));
  }
  return true;
}

// A plain view is decided by its rule alone. Returns false, with nothing done, if the call needs
// call_general, if only to say what is wrong with it.
bool call_view(const Operator& op, const tenon_value* args, tenon_value* outs, tenon_err* err,
               tenon_status* status) {
  tenon_tensor* base = as_tensor(args[0]);
  if (!base || outs[0].tag != TENON_VALUE_NONE || !find_device(base->device)) return false;
  tenon_tensor* view;
  if (!view_by_rule(op, args, base, &view, err, status)) return *status != TENON_OK;
  outs[0] = boxed(view);
  return true;
}

const Resolution* resolution(const Plan& plan) {
  uint32_t kind = TENON_DEVICE_KIND(plan.device->id);
  const Resolution* known = plan.op.cell(kind, plan.compute);
  return known ? known : resolve(plan.op, kind, plan.compute);
}

// Of several kernels the first that accepts the arguments; `*cell` is the list of them.
tenon_status choose_candidate(const Plan& plan, const Resolution** cell, Route* route) {
  *route = (*cell)->otherwise;
  for (auto* candidate = (*cell)->candidates; *candidate; ++candidate) {
    try {
      auto can_run = (*candidate)->kernel->def.can_run;
      if (can_run && !can_run(plan.values, plan.op.def.nparams)) continue;
    } catch (...) {
      return fail_escaped(plan.err, describe(*(*candidate)->kernel) + ", its can_run");
    }
    *route = Route::kNative;
    *cell = *candidate;
    break;
  }
  return TENON_OK;
}

tenon_status no_kernel(const Plan& plan) {
  std::string others;
  for (uint32_t kind = 0; kind < slots::device_kind_count(); ++kind)
    if (!kernels_for(plan.op, kind, plan.compute).empty())
      others += (others.empty() ? "" : ", ") + std::string(slots::device_kind_name(kind));
  return fail(
      plan.err, TENON_UNSUPPORTED, "[%s] no kernel for %s on %s, and no decomposition; %s%s%s",
      short_name(plan.op), dtype_name(plan.compute), plan.device->name,
      others.empty() ? "no loaded plugin has one for this dtype" : "devices that have one: ",
      others.c_str(),
      is_deterministic() ? "; kernels that are not deterministic are held back: turn the "
                           "deterministic mode off to use them"
                         : "");
}

tenon_status make_views(Plan& plan, tenon_value* results) {
  for (uint32_t i = 0; i < plan.op.def.nouts; ++i) {
    const tenon_meta& meta = plan.metas[i];
    if (meta.kind == TENON_META_VIEW) {
      tenon_tensor* base =
          meta.view_of < plan.op.def.nparams ? as_tensor(plan.args[meta.view_of]) : nullptr;
      if (!base && meta.view_of < plan.op.def.nparams && is_scalar_tag(plan.args[meta.view_of].tag))
        return fail(
            plan.err, TENON_TYPE_MISMATCH,
            "[%s] argument `%s`: expected a Tensor, whose memory the result shares, got %s; "
            "convert it with tensor(...)",
            short_name(plan.op), plan.op.def.params[meta.view_of].name,
            value_kind_name(plan.args[meta.view_of].tag));
      if (!base)
        return fail(plan.err, TENON_INTERNAL,
                    "[%s] its shape rule names argument %u as base, which is no tensor",
                    short_name(plan.op), meta.view_of);
      tenon_tensor* view;
      tenon_status status = slots::tensor_view_of(base, meta.dtype, meta.ndim, meta.shape,
                                                  meta.strides, meta.offset, &view, plan.err);
      if (status != TENON_OK) return fail_rule(plan, status);  // rules may lie
      if (plan.op.def.flags & TENON_OP_NO_GRAD) view->flags &= ~uint16_t{TENON_TENSOR_FOLLOWS_BASE};
      results[i] = boxed(view);
    } else {
      TensorImpl* created;
      TENON_TRY(create_tensor(*plan.device, meta.dtype, meta.ndim, meta.shape, &created, plan.err));
      results[i] = boxed(created);
    }
  }
  return TENON_OK;
}

// Views and meta tensors are made from their description alone.
tenon_status run_without_kernel(Plan& plan) {
  tenon_value results[kMaxOutputs] = {};
  tenon_status status = make_views(plan, results);
  if (status == TENON_OK) return deliver(plan, results);
  drop_results(results, plan.op.def.nouts);
  return status;
}

[[gnu::noinline]] tenon_status call_general(Operator& op, const tenon_value* args,
                                            tenon_value* outs, tenon_err* err) {
  tenon_status status;
  if (op.views_first && call_view(op, args, outs, err, &status)) return status;
  Plan plan(op, args, outs, err);
  TENON_TRY(plan_call(plan));

  bool on_meta = plan.device->id == TENON_DEVICE_META;
  if (on_meta && !plan.has_metas)
    return fail(err, TENON_UNSUPPORTED,
                "[%s] the shape of the result depends on the data, which meta tensors do not have; "
                "use a real device, or give an operator of your own a shape rule with .shape",
                short_name(op));
  if (on_meta || op.def.flags & TENON_OP_VIEW) return run_without_kernel(plan);

  const Resolution* cell = resolution(plan);
  Route route = cell->route;
  if (route == Route::kChoose) TENON_TRY(choose_candidate(plan, &cell, &route));
  switch (route) {
    case Route::kNative:
      return run_native(plan, *cell);
    case Route::kLowered:
      count(cell->lowered_calls);
      return op.def.flags & TENON_OP_PRIMITIVE ? run_primitive_lowered(plan, *cell)
                                               : run_lowered(plan);
    case Route::kHost:
      return run_on_host(plan, *cell);
    default:
      return no_kernel(plan);
  }
}

// Whether the device has one kernel for the whole of a composite.
bool has_own_kernel(Operator& op, const tenon_value* args, tenon_value* outs) {
  Plan plan(op, args, outs, nullptr);
  if (plan_dtype(plan) != TENON_OK || plan.device->id == TENON_DEVICE_META) return false;
  const Resolution* cell = resolution(plan);
  return cell->route == Route::kNative || cell->route == Route::kChoose;
}

// The error of a part names the part: the caller called the whole, and reads that name first.
[[gnu::cold]] tenon_status fail_part(const Operator& op, tenon_status status, tenon_err* err) {
  std::string name = "[" + std::string(short_name(op)) + "]";
  if (err && !err->text.starts_with(name)) add_context(err, "%s", name.c_str());
  return status;
}

[[gnu::cold]] tenon_status fail_parts(const Operator& op, tenon_value* outs, tenon_status status,
                                      tenon_err* err) {
  drop_results(outs, op.def.nouts);
  std::fill_n(outs, op.def.nouts, kNoValue);
  return fail_part(op, status, err);
}

// A part that converts its arguments would convert what is stored only, and compute with it unasked.
bool refuses_storage(const Operator& op, const tenon_value* args) {
  if (op.def.dtype_mask >> TENON_DTYPE_F8E4M3FNUZ & 1) return false;
  bool found = false;
  visit_tensors(args, op.def.nparams,
                [&](const tenon_tensor& tensor) { found |= is_storage(tensor.dtype); });
  return found;
}

[[gnu::cold]] tenon_status fail_storage(const Operator& op, const tenon_value* args,
                                        tenon_err* err) {
  const char* name = "";
  visit_tensors(args, op.def.nparams, [&](const tenon_tensor& tensor) {
    if (is_storage(tensor.dtype)) name = dtype_name(tensor.dtype);
  });
  return fail(err, TENON_TYPE_MISMATCH,
              "[%s] expected dtypes with arithmetic, got %s, which is stored only; convert it to a "
              "dtype with arithmetic first, such as float32",
              short_name(op), name);
}

bool has_composed(const tenon_value* values, uint32_t count) {
  bool found = false;
  visit_tensors(values, count, [&](const tenon_tensor& tensor) {
    found |= (tensor.flags & TENON_TENSOR_COMPOSED) != 0;
  });
  return found;
}

// The layers that compose tensors of others are asked about the whole, in order. TENON_LAYER_DECLINED:
// it is taken apart.
tenon_status ask_composing_layers(const Operator& op, tenon_value* args, tenon_value* outs,
                                  tenon_err* err) {
  const uint32_t nargs = op.def.nparams, nouts = op.def.nouts;
  LayerSet wanted = wanted_layers(args, nargs, outs, nouts, enabled_layers()) &
                    layer_table.composites.load(std::memory_order_relaxed);
  while (wanted) {
    const int32_t layer = first_layer(wanted);
    const tenon_layer_def& def = layer_table.defs[layer];
    const tenon_status status = def.call(def.self, &op, args, nargs, outs, nouts, err);
    if (status != TENON_LAYER_DECLINED) return status;
    wanted &= ~(LayerSet{1} << layer);
  }
  return TENON_LAYER_DECLINED;
}

// Whether what has to be known before a composite is taken apart may hold for one of its tensors: that
// it is composed, or has a dtype without arithmetic, or complex128, whose id has the same bit.
[[gnu::always_inline]] inline bool may_be_special(const tenon_value* args, uint32_t nargs) {
  constexpr uint32_t kSpecial = TENON_TENSOR_COMPOSED | (TENON_DTYPE_C128 << 16);
  static_assert(TENON_DTYPE_C128 == 16 && TENON_DTYPE_F8E4M3FNUZ == 17 && TENON_DTYPE_COUNT <= 32);
  static_assert(offsetof(tenon_tensor, dtype) == offsetof(tenon_tensor, flags) + 2);
  uint32_t seen = 0;  // flags, dtypes and layers of all tensors
  visit_tensors(args, nargs, [&](const tenon_tensor& tensor) {
    uint32_t word;
    std::memcpy(&word, &tensor.flags, sizeof word);
    seen |= word;
  });
  return seen & kSpecial;
}

[[gnu::noinline]] tenon_status run_special_parts(Operator& op, tenon_value* args, tenon_value* outs,
                                                 tenon_err* err) {
  if (has_composed(args, op.def.nparams)) {
    const tenon_status status = ask_composing_layers(op, args, outs, err);
    if (status != TENON_LAYER_DECLINED) return status;
  }
  if (refuses_storage(op, args)) return fail_storage(op, args, err);
  tenon_status status = op.decompose(args, outs, err);
  return status == TENON_OK ? TENON_OK : fail_parts(op, outs, status, err);
}

// The parts of a composite, where all results are new.
[[gnu::always_inline]] inline tenon_status run_parts(Operator& op, tenon_value* args,
                                                     tenon_value* outs, tenon_err* err) {
  if (may_be_special(args, op.def.nparams)) [[unlikely]]
    return run_special_parts(op, args, outs, err);
  tenon_status status = op.decompose(args, outs, err);
  if (status == TENON_OK) [[likely]]
    return TENON_OK;
  return fail_parts(op, outs, status, err);
}

// Arguments that are given as outputs too, replaced by copies.
class CopiedArguments {
 public:
  tenon_status copy(const Operator& op, const tenon_value* args, const tenon_value* outs,
                    tenon_err* err) {
    std::copy_n(args, op.def.nparams, values_);
    for (uint32_t i = 0; i < op.def.nparams; ++i)
      for (uint32_t k = 0; k < op.def.nouts; ++k) {
        if (!as_tensor(args[i]) || as_tensor(args[i]) != as_tensor(outs[k])) continue;
        tenon_value from[2] = {args[i], {}}, copied[1] = {};
        TENON_TRY(slots::op_call(materialize_operator(), from, 1, copied, 1, err));
        copies_[k] = TensorRef(impl(as_tensor(copied[0])));
        values_[i] = copied[0];
        break;
      }
    return TENON_OK;
  }
  const tenon_value* values() const { return values_; }

 private:
  tenon_value values_[kMaxParams];
  TensorRef copies_[kMaxOutputs];
};

// The parts of a composite, where some results have to be written into tensors of the caller.
[[gnu::noinline]] tenon_status decompose_into(Operator& op, tenon_value* args, tenon_value* outs,
                                              tenon_err* err) {
  const LayerSet wanted = wanted_layers(args, op.def.nparams, outs, op.def.nouts, enabled_layers());
  if (wanted & kRefusesComposedBit) [[unlikely]] {
    const tenon_status status = ask_composing_layers(op, args, outs, err);
    if (status != TENON_LAYER_DECLINED) return status;
  }
  if (may_be_special(args, op.def.nparams) && refuses_storage(op, args))
    return fail_storage(op, args, err);
  tenon_value results[kMaxOutputs] = {};
  // An operator that may write over an argument passes its output on to the part that does. What the parts of others
  // read may be read again later where a layer watches them; so they get a copy of what is overwritten.
  const bool is_passed =
      op.in_place >= 0 && as_tensor(outs[0]) && as_tensor(outs[0]) == as_tensor(args[op.in_place]);
  const tenon_value* read = args;
  CopiedArguments copied;
  if (is_passed) {
    results[0] = outs[0];
  } else if (wanted & ~layer_table.wholes.load(std::memory_order_relaxed)) {
    TENON_TRY(copied.copy(op, args, outs, err));
    read = copied.values();
  }
  tenon_status status = op.decompose(read, results, err);
  if (status != TENON_OK) {
    drop_results(results, op.def.nouts, is_passed ? outs : nullptr);
    return fail_part(op, status, err);
  }
  if (is_passed && as_tensor(results[0]) == as_tensor(outs[0])) return TENON_OK;
  for (uint32_t i = 0; i < op.def.nouts; ++i) {
    if (outs[i].tag == TENON_VALUE_NONE) {
      outs[i] = results[i];
      continue;
    }
    // Through the operator, so that layers see the write.
    tenon_value from[2] = {results[i], {}}, to[1] = {outs[i]};
    status = slots::op_call(materialize_operator(), from, 1, to, 1, err);
    drop_results(results + i, 1);
    if (status != TENON_OK) return fail_part(op, status, err);
  }
  return TENON_OK;
}

// Composites are taken apart above the layers, which then see the parts.
[[gnu::noinline]] tenon_status call_composite(Operator& op, tenon_value* args, tenon_value* outs,
                                              tenon_err* err) {
  tenon_status status;
  if (op.can_infer()) {  // without a shape rule there is neither a view nor a kernel for the whole
    LayerSet wanted = wanted_layers(args, op.def.nparams, outs, op.def.nouts, enabled_layers());
    if (op.views_first && !wanted && call_view(op, args, outs, err, &status)) return status;
    bool want_parts = wanted & ~layer_table.wholes.load(std::memory_order_relaxed);
    if (!want_parts && has_own_kernel(op, args, outs))
      return wanted ? enter_layer(wanted, op, args, op.def.nparams, outs, op.def.nouts, err)
                    : call_general(op, args, outs, err);
  }
  const uint32_t nouts = op.def.nouts;
  auto is_given = [](const tenon_value& out) { return out.tag != TENON_VALUE_NONE; };
  if (std::none_of(outs, outs + nouts, is_given)) [[likely]]
    return run_parts(op, args, outs, err);
  return decompose_into(op, args, outs, err);
}

// An operator that takes nothing but tensors, which were looked at.
[[gnu::always_inline]] inline tenon_status call_on_tensors(Operator& op, Operands& seen,
                                                           tenon_value* args, tenon_value* outs,
                                                           tenon_err* err) {
  uint32_t nargs = op.def.nparams;
  if (const tenon_tensor* out = as_tensor(outs[0])) seen.add(*out);
  LayerSet wanted =
      enabled_layers() & (seen.layers | layer_table.every_call.load(std::memory_order_relaxed));
  if (seen.flags & kOtherLayers) wanted = wanted_layers(args, nargs, outs, 1, enabled_layers());
  if (wanted) return enter_layer(wanted, op, args, nargs, outs, 1, err);
  tenon_status status;
  if (call_fast(op, seen, args, outs, err, &status)) return status;
  return call_general(op, args, outs, err);
}

// Any operator, with complete arguments.
[[gnu::always_inline]] inline tenon_status call_any(Operator& op, tenon_value* args,
                                                    tenon_value* outs, tenon_err* err) {
  if (op.def.flags & TENON_OP_COMPOSITE) return call_composite(op, args, outs, err);
  LayerSet wanted = wanted_layers(args, op.def.nparams, outs, op.def.nouts, enabled_layers());
  if (wanted) return enter_layer(wanted, op, args, op.def.nparams, outs, op.def.nouts, err);
  return call_general(op, args, outs, err);
}

// Of an operator with defaults that are still to be converted.
[[gnu::noinline]] tenon_status convert_and_call(Operator& op, tenon_value* args, tenon_value* outs,
                                                tenon_err* err) {
  Arguments room;
  TENON_TRY(complete_arguments(op, args, op.def.nparams, room, &args, err));
  return call_any(op, args, outs, err);
}

}  // namespace

tenon_status call_complete(const tenon_op* handle, tenon_value* args, tenon_value* outs,
                           tenon_err* err) {
  auto& op = *const_cast<Operator*>(handle);
  if (op.is_its_parts && outs[0].tag == TENON_VALUE_NONE) return run_parts(op, args, outs, err);
  Operands seen;
  if (op.tensor_params_only && look_at(args, op.def.nparams, seen)) [[likely]]
    return call_on_tensors(op, seen, args, outs, err);
  if (!op.plain_defaults) [[unlikely]]
    return convert_and_call(op, args, outs, err);
  return call_any(op, args, outs, err);
}

const Resolution* choose_native(const Plan& plan) {
  const Resolution* cell = resolution(plan);
  Route route = cell->route;
  if (route == Route::kChoose && choose_candidate(plan, &cell, &route) != TENON_OK) return nullptr;
  return route == Route::kNative ? cell : nullptr;
}

tenon_status call_kernel(Operator& op, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  Operands seen;
  tenon_status status;
  if (op.tensor_params_only && look_at(args, op.def.nparams, seen) &&
      call_fast(op, seen, args, outs, err, &status))
    return status;
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

tenon_status kernel_result(const Operator& op, const Device& device, tenon_status status,
                           tenon_err* err) {
  if (status == TENON_OK) return status;
  if (err && err->code == TENON_OK)
    return fail(err, TENON_INTERNAL, "[%s] the kernel on %s failed with code %d and no text",
                short_name(op), device.name, status);
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
    return core::fail(err, TENON_INVALID_ARGUMENT, "[%s] expected room for %u results, got %u",
                      short_name(*op), op->def.nouts, nouts);

  // Simple operators have no defaults to fill in: one look says whether the arguments are what they
  // take.
  Operands seen;
  if (op->tensor_params_only && nargs == op->def.nparams && look_at(args, nargs, seen)) [[likely]]
    return call_on_tensors(*op, seen, args, outs, err);
  Arguments room;
  TENON_TRY(complete_arguments(*op, args, nargs, room, &args, err));
  return call_any(*op, args, outs, err);
}

[[gnu::flatten]] tenon_status op_call_below(int32_t layer, const tenon_op* handle,
                                            tenon_value* args, uint32_t nargs, tenon_value* outs,
                                            uint32_t nouts, tenon_err* err) {
  auto* op = const_cast<Operator*>(handle);
  if (nargs != op->def.nparams) [[unlikely]]
    return core::fail(err, TENON_INVALID_ARGUMENT,
                      "[%s] a layer must pass on all %u arguments, got %u", short_name(*op),
                      op->def.nparams, nargs);
  const LayerSet allowed = enabled_layers() & layer_table.after[layer];
  LayerSet wanted = allowed ? wanted_layers(args, nargs, outs, nouts, allowed) : 0;
  if (wanted) return enter_layer(wanted, *op, args, nargs, outs, nouts, err);
  return call_kernel(*op, args, outs, err);
}

}  // namespace slots
}  // namespace tenon::core
