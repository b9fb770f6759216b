// SPDX-License-Identifier: Apache-2.0
// Running a device's own kernel: inputs and outputs are brought into the form that its traits ask
// for.
#include <iterator>
#include <vector>

#include "kernel_core/dispatch/call.hpp"
#include "kernel_core/dispatch/registry.hpp"
#include "kernel_core/runtime/tensor_shape.hpp"

namespace tenon::core {
namespace {

// Temporaries of one call. Most calls need none, so there is nothing to construct; a list argument
// may need many.
struct Temporaries {
  Temporaries() {}
  ~Temporaries() {
    for (uint32_t i = 0; i < count; ++i) release(few[i]);
  }

  tenon_tensor* keep(TensorRef tensor) {
    TensorImpl* kept = tensor.take();
    if (count < std::size(few))
      few[count++] = kept;
    else
      many.emplace_back(kept);
    return kept;
  }

  TensorImpl* few[kMaxParams];
  uint32_t count = 0;
  std::vector<TensorRef> many;
  std::vector<std::vector<tenon_tensor*>> lists;
};

// The device's own copy of a host scalar.
tenon_status put_scalar_on_device(const Plan& plan, const tenon_tensor& scalar, TensorRef* out) {
  TENON_TRY(create_tensor(*plan.device, scalar.dtype, 0, nullptr, out->receive(), plan.err));
  uint32_t bytes = dtype_size(scalar.dtype);
  const tenon_tensor& target = *out->get();
  return device_result(
      *plan.device, "fill",
      plan.device->api->fill(plan.device->handle, target.data, target.byte_offset, bytes,
                             scalar.data, bytes, current_stream(*plan.device), plan.err),
      plan.err);
}

bool is_host_scalar(const tenon_tensor& tensor) { return tensor.flags & TENON_TENSOR_HOST_SCALAR; }

// One tensor, brought into the form that the kernel reads. `*tensor` is replaced.
tenon_status prepare_input(const Plan& plan, uint32_t traits, uint32_t flags, tenon_tensor** tensor,
                           Temporaries& temporaries) {
  TensorRef fresh;
  auto replace = [&](tenon_status made) {
    if (made == TENON_OK) *tensor = temporaries.keep(std::move(fresh));
    return made;
  };
  if (is_host_scalar(**tensor) && !(traits & TENON_KERNEL_HOST_SCALARS))
    TENON_TRY(replace(put_scalar_on_device(plan, **tensor, &fresh)));
  if (flags & TENON_PARAM_FLAG_PROMOTE && (*tensor)->dtype != plan.compute &&
      !(traits & TENON_KERNEL_MIXED_DTYPES))
    TENON_TRY(replace(convert(*tensor, plan.compute, &fresh, plan.err)));
  if (flags & TENON_PARAM_FLAG_BROADCAST && !(traits & TENON_KERNEL_BROADCAST) && plan.has_metas &&
      !is_host_scalar(**tensor) && !same_shape(**tensor, plan.metas[0].ndim, plan.metas[0].shape))
    TENON_TRY(replace(
        expand_view(*impl(*tensor), plan.metas[0].ndim, plan.metas[0].shape, &fresh, plan.err)));
  if (!((*tensor)->flags & TENON_TENSOR_CONTIGUOUS) && !(traits & TENON_KERNEL_STRIDED))
    TENON_TRY(replace(materialize(*tensor, &fresh, plan.err)));
  return TENON_OK;
}

// `in_place`: the parameter that the kernel writes over, which it takes as it is; -1: none.
tenon_status prepare_inputs(Plan& plan, uint32_t traits, int in_place, Temporaries& temporaries) {
  for (uint32_t i = 0; i < plan.op.def.nparams; ++i) {
    const tenon_value& value = plan.values[i];
    uint32_t flags = plan.op.def.params[i].flags;
    if (value.tag == TENON_VALUE_TENSOR) {
      if (static_cast<int>(i) == in_place) continue;
      auto* tensor = static_cast<tenon_tensor*>(value.v.p);
      TENON_TRY(prepare_input(plan, traits, flags, &tensor, temporaries));
      if (tensor != value.v.p) plan.own_values()[i].v.p = tensor;
    } else if (value.tag == TENON_VALUE_TENSORS) {
      auto* list = static_cast<tenon_tensor* const*>(value.v.p);
      auto& prepared = temporaries.lists.emplace_back(list, list + value.aux);
      for (tenon_tensor*& tensor : prepared)
        if (tensor) TENON_TRY(prepare_input(plan, traits, flags, &tensor, temporaries));
      plan.own_values()[i].v.p = prepared.data();
    }
  }
  return TENON_OK;
}

bool ranges_overlap(const tenon_tensor& a, const tenon_tensor& b) {
  if (a.numel == 0 || b.numel == 0) return false;
  auto range = [](const tenon_tensor& tensor) {
    Extent extent = extent_of(tensor.ndim, tensor.shape, tensor.strides);
    int64_t size = dtype_size(tensor.dtype);
    int64_t base =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset);
    return Extent{base + extent.low * size, base + (extent.high + 1) * size};
  };
  Extent first = range(a), second = range(b);
  return first.low < second.high && second.low < first.high;
}

bool same_layout(const tenon_tensor& a, const tenon_tensor& b) {
  if (a.data != b.data || a.byte_offset != b.byte_offset || a.dtype != b.dtype || a.ndim != b.ndim)
    return false;
  for (int32_t axis = 0; axis < a.ndim; ++axis)
    if (a.shape[axis] != b.shape[axis] || (a.shape[axis] > 1 && a.strides[axis] != b.strides[axis]))
      return false;
  return true;
}

// Whether the kernel would overwrite what it still has to read.
bool clashes_with_inputs(const Plan& plan, const tenon_tensor& out) {
  bool exact_is_fine = plan.op.def.flags & TENON_OP_ELEMENTWISE;
  bool clashes = false;
  visit_tensors(plan.values, plan.op.def.nparams, [&](const tenon_tensor& input) {
    if (is_host_scalar(input) || impl(&input)->storage != impl(&out)->storage) return;
    clashes |= !(exact_is_fine && same_layout(input, out)) && ranges_overlap(input, out);
  });
  return clashes;
}

// The parameter that the kernel writes over: its tensor is the output, and no other argument shares memory with it, under
// whatever handle. -1: none, so that a result that is not elementwise goes through memory of its own.
[[gnu::noinline]] int find_parameter_in_place(const Plan& plan) {
  const int parameter = plan.op.in_place;
  if (parameter < 0 || !plan.has_metas) return -1;
  const tenon_tensor *out = as_tensor(plan.outs[0]), *written = as_tensor(plan.args[parameter]);
  if (!out || !written || !same_layout(*written, *out) || out->dtype != plan.metas[0].dtype)
    return -1;
  bool overlaps = false;
  for (uint32_t i = 0; i < plan.op.def.nparams; ++i)
    if (static_cast<int>(i) != parameter)
      visit_tensors(plan.values + i, 1, [&](const tenon_tensor& input) {
        overlaps |= !is_host_scalar(input) && ranges_overlap(input, *out);
      });
  return overlaps ? -1 : parameter;
}

int parameter_in_place(const Plan& plan, uint32_t traits) {
  return traits & TENON_KERNEL_IN_PLACE ? find_parameter_in_place(plan) : -1;
}

// Whether the kernel can write straight into an output that the caller gave.
bool writes_directly(const Plan& plan, uint32_t traits, uint32_t index, const tenon_tensor& out) {
  if (!plan.has_metas || out.dtype != plan.metas[index].dtype) return false;
  if (!(out.flags & TENON_TENSOR_CONTIGUOUS) && !(traits & TENON_KERNEL_STRIDED_OUT)) return false;
  return !clashes_with_inputs(plan, out);
}

// The input whose order of axes a new result takes: of an elementwise operator one of those that
// have the result's shape, if these agree; else the first argument.
const tenon_tensor* layout_of(const Plan& plan, const tenon_tensor& result) {
  if (!(plan.op.def.flags & (TENON_OP_ELEMENTWISE | TENON_OP_CONVERT))) {
    const tenon_tensor* first = plan.op.def.nparams > 0 ? as_tensor(plan.values[0]) : nullptr;
    return first && first->ndim == result.ndim ? first : nullptr;
  }
  const tenon_tensor* first = nullptr;
  bool alike = true;
  visit_tensors(plan.values, plan.op.def.nparams, [&](const tenon_tensor& input) {
    if (!same_shape(input, result.ndim, result.shape)) return;
    if (!first) first = &input;
    alike &= std::equal(input.strides, input.strides + input.ndim, first->strides);
  });
  return alike ? first : nullptr;
}

// Strides of a dense tensor whose axes have the order that they have in `other`, outermost first.
void strides_in_order_of(const tenon_tensor& other, const int64_t* shape, int64_t* strides) {
  int32_t order[TENON_MAX_NDIM];
  for (int32_t axis = 0; axis < other.ndim; ++axis) {
    int32_t at = axis;
    for (; at > 0 && other.strides[order[at - 1]] < other.strides[axis]; --at)
      order[at] = order[at - 1];
    order[at] = axis;
  }
  int64_t step = 1;
  for (int32_t at = other.ndim - 1; at >= 0; --at) {
    strides[order[at]] = step;
    step *= shape[order[at]];
  }
}

// A new result lies row by row, unless the input that it follows lies densely in another order of
// the axes: then it has that order, and the call runs along memory. For kernels that write any
// strides.
void keep_layout(const Plan& plan, uint32_t traits, tenon_tensor& result) {
  if (plan.op.def.flags & (TENON_OP_MATERIALIZE | TENON_OP_STRIDED) ||
      !(traits & TENON_KERNEL_STRIDED_OUT) || result.numel == 0)
    return;
  const tenon_tensor* first = layout_of(plan, result);
  if (!first || first->flags & TENON_TENSOR_CONTIGUOUS || may_overlap_itself(*first)) return;
  Extent extent = extent_of(first->ndim, first->shape, first->strides);
  if (extent.low != 0 || extent.high + 1 != first->numel) return;
  int64_t strides[TENON_MAX_NDIM];
  strides_in_order_of(*first, result.shape, strides);
  bool is_rows = true;
  for (int32_t axis = 0; axis < result.ndim; ++axis)
    is_rows &= result.shape[axis] == 1 || strides[axis] == result.strides[axis];
  if (is_rows) return;
  std::copy_n(strides, result.ndim, result.strides);
  result.flags &= ~uint16_t{TENON_TENSOR_CONTIGUOUS};
}

}  // namespace

tenon_status run_native(Plan& plan, const Resolution& kernel) {
  Operator& op = plan.op;
  bool moves_layout = op.def.flags & (TENON_OP_MATERIALIZE | TENON_OP_STRIDED);
  constexpr uint32_t kAnyLayout = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT;
  if (moves_layout && (kernel.traits & kAnyLayout) != kAnyLayout)
    return fail(plan.err, TENON_INTERNAL,
                "[%s] the kernel of plugin %s must declare STRIDED and STRIDED_OUT: it is what "
                "makes tensors contiguous",
                short_name(op), kernel.kernel->plugin.c_str());
  Temporaries temporaries;
  const int in_place = parameter_in_place(plan, kernel.traits);
  TENON_TRY(prepare_inputs(plan, kernel.traits, in_place, temporaries));

  tenon_value results[kMaxOutputs];
  for (uint32_t i = 0; i < op.def.nouts; ++i) results[i].tag = TENON_VALUE_NONE;
  tenon_status status = TENON_OK;
  for (uint32_t i = 0; i < op.def.nouts && plan.has_metas; ++i) {
    tenon_tensor* given = as_tensor(plan.outs[i]);
    if (given && (in_place >= 0 || writes_directly(plan, kernel.traits, i, *given))) {
      results[i] = plan.outs[i];
      continue;
    }
    const tenon_meta& meta = plan.metas[i];
    TensorImpl* created;
    status = create_tensor(*plan.device, meta.dtype, meta.ndim, meta.shape, &created, plan.err);
    if (status != TENON_OK) break;
    keep_layout(plan, kernel.traits, *created);
    results[i] = boxed(created);
  }
  if (status == TENON_OK) {
    tenon_ctx ctx(&op, *plan.device, results, op.def.nouts);
    status = invoke(kernel, ctx, plan.values, op.def.nparams, results, op.def.nouts, plan.err);
    count(kernel.native_calls);
    status = kernel_result(op, *plan.device, status, plan.err);
    for (uint32_t i = 0; i < op.def.nouts && status == TENON_OK; ++i)
      if (results[i].tag != TENON_VALUE_TENSOR)
        status =
            fail(plan.err, TENON_INTERNAL, "[%s] the kernel of plugin %s never allocated result %u",
                 short_name(op), kernel.kernel->plugin.c_str(), i);
  }
  if (status != TENON_OK) {
    drop_results(results, op.def.nouts, plan.outs);
    return status;
  }
  return deliver(plan, results);
}

}  // namespace tenon::core
