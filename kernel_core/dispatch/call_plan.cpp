// SPDX-License-Identifier: Apache-2.0
// What must be known about a call before a kernel can run: device, compute dtype, output shapes.
#include <algorithm>
#include <bit>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/dispatch/call.hpp"
#include "kernel_core/runtime/tensor_shape.hpp"

namespace tenon::core {
int32_t output_dtype(const Operator& op, int32_t compute) {
  if (op.def.out_dtype == TENON_OUT_BOOL) return TENON_DTYPE_BOOL;
  if (op.def.out_dtype != TENON_OUT_REAL) return compute;
  return compute == TENON_DTYPE_C64    ? TENON_DTYPE_F32
         : compute == TENON_DTYPE_C128 ? TENON_DTYPE_F64
                                       : compute;
}

std::string dtype_list(uint64_t mask) {
  // A short list of what is missing is easier to read than a long list of what is there.
  constexpr uint64_t kAll = (uint64_t{1} << TENON_DTYPE_COUNT) - 1;
  uint64_t arithmetic = 0;
  for (int32_t dtype = 0; dtype < TENON_DTYPE_COUNT; ++dtype)
    if (dtype_class(dtype) != DtypeClass::kStorage) arithmetic |= uint64_t{1} << dtype;
  const bool few_missing = !(mask & kAll & ~arithmetic) && std::popcount(~mask & arithmetic) <= 2;
  const uint64_t named = (few_missing ? ~mask & arithmetic : mask & kAll);
  std::string text = few_missing ? "any dtype with arithmetic" : "one of ";
  const char* separator = few_missing ? " but " : "";
  for (int32_t dtype = 0; dtype < TENON_DTYPE_COUNT; ++dtype) {
    if (!(named >> dtype & 1)) continue;
    text += std::string(separator) + dtype_name(dtype);
    separator = few_missing ? " and " : ", ";
  }
  return text;
}

tenon_status fail_rule(const Plan& plan, tenon_status status) {
  add_context(plan.err, "[%s] its shape rule", short_name(plan.op));
  return status;
}

namespace {

tenon_status find_call_device(Plan& plan) {
  tenon_device_id id = TENON_DEVICE_NONE, other = TENON_DEVICE_NONE;
  uint32_t index = 0;
  for (; index < plan.op.def.nparams && other == TENON_DEVICE_NONE; ++index)
    visit_tensors(plan.args + index, 1, [&](const tenon_tensor& tensor) {
      if (id == TENON_DEVICE_NONE) id = tensor.device;
      if (id != tensor.device) other = tensor.device;
    });
  if (other != TENON_DEVICE_NONE)
    return fail(plan.err, TENON_INVALID_ARGUMENT,
                "[%s] expected all tensors on one device, got `%s` on %s and others on %s; move "
                "one with .to()",
                short_name(plan.op), plan.op.def.params[index - 1].name, device_name(other).c_str(),
                device_name(id).c_str());
  // A device parameter decides where creation operators put their result.
  for (uint32_t i = 0; plan.op.def.compute == TENON_COMPUTE_OUTPUT && i < plan.op.def.nparams; ++i)
    if (plan.args[i].tag == TENON_VALUE_DEVICE) id = static_cast<tenon_device_id>(plan.args[i].v.i);
  if (id == TENON_DEVICE_NONE) {
    tenon_tensor* out = as_tensor(plan.outs[0]);
    id = out ? out->device : slots::device_host();
  }
  if (id == TENON_DEVICE_NONE)
    return fail(plan.err, TENON_NOT_FOUND,
                "[%s] no device to run on: no tensor was given and no host device is loaded",
                short_name(plan.op));
  return open_device(id, &plan.device,
                     plan.err);  // says why a device that was open is not any more
}

// The dtype of a number given for a parameter that is not promoted: bool, int64, float32 or
// complex64; in a call that computes with float64 or complex128 one of double width, so that no
// digits are lost (docs/decisions/0056-numbers-beside-double-tensors.md).
int32_t dtype_of_number(int32_t compute, DtypeClass number) {
  const bool wide = compute == TENON_DTYPE_F64 || compute == TENON_DTYPE_C128;
  if (wide && number == DtypeClass::kFloating) return TENON_DTYPE_F64;
  if (wide && number == DtypeClass::kComplex) return TENON_DTYPE_C128;
  return promote_weak(TENON_DTYPE_BOOL, number);
}

// Whether no tensor is given before parameter `i`. The kernel of an operator that computes in the dtype of the first
// tensor reads its memory as one of this dtype, also if it is a number: tensors behind it only say how wide it is.
bool comes_first(const Plan& plan, uint32_t i) {
  bool first = true;
  for (uint32_t before = 0; before < i; ++before) {
    first &= plan.op.def.params[before].kind != TENON_PARAM_TENSOR ||
             !is_scalar_tag(plan.args[before].tag);
    visit_tensors(plan.args + before, 1, [&](const tenon_tensor&) { first = false; });
  }
  return first;
}

tenon_status find_compute_dtype(Plan& plan) {
  Operator& op = plan.op;
  int32_t compute = -1;
  if (op.def.compute == TENON_COMPUTE_OUTPUT) {
    compute = plan.has_metas ? int32_t{plan.metas[0].dtype} : int32_t{TENON_DTYPE_F32};
  } else {
    bool promotes = op.def.compute != TENON_COMPUTE_FIRST;
    int32_t unlike = -1;  // a dtype beside one that is stored only, which nothing is promoted to
    for (uint32_t i = 0; i < op.def.nparams; ++i)
      visit_tensors(plan.args + i, 1, [&](const tenon_tensor& tensor) {
        if (compute < 0 && (!promotes || op.def.params[i].flags & TENON_PARAM_FLAG_PROMOTE))
          compute = int32_t{tensor.dtype};
        else if (promotes && op.def.params[i].flags & TENON_PARAM_FLAG_PROMOTE) {
          if (compute != tensor.dtype && (is_storage(compute) || is_storage(tensor.dtype)))
            unlike = is_storage(compute) ? int32_t{tensor.dtype} : compute;
          compute = promote(compute, tensor.dtype);
        }
      });
    if (unlike >= 0)
      return fail(plan.err, TENON_TYPE_MISMATCH,
                  "[%s] expected one dtype, got %s and %s: nothing is promoted to or from a dtype "
                  "that is stored only; convert one of them",
                  short_name(op), dtype_name(compute), dtype_name(unlike));
    // Numbers given for promoted parameters change the class only.
    for (uint32_t i = 0; i < op.def.nparams; ++i) {
      bool counts =
          op.def.params[i].kind == TENON_PARAM_TENSOR && is_scalar_tag(plan.args[i].tag) &&
          (promotes ? op.def.params[i].flags & TENON_PARAM_FLAG_PROMOTE : comes_first(plan, i));
      if (!counts) continue;
      DtypeClass number = scalar_class(plan.args[i].tag);
      // Among numbers alone: bool, int64, float32.
      compute = promotes ? promote_weak(compute < 0 ? TENON_DTYPE_BOOL : compute, number)
                         : dtype_of_number(compute, number);
      // A comparison has an answer also where the other side cannot be that number.
      if (op.def.out_dtype == TENON_OUT_BOOL && compute != TENON_DTYPE_U64 &&
          !holds_number(compute, plan.args[i]))
        compute = TENON_DTYPE_I64;
    }
    if (compute < 0) compute = TENON_DTYPE_F32;
    if (op.def.compute == TENON_COMPUTE_PROMOTE_FLOAT &&
        dtype_class(compute) < DtypeClass::kFloating)
      compute = TENON_DTYPE_F32;
  }
  if (!(op.def.dtype_mask >> compute & 1) && is_storage(compute))
    return fail(plan.err, TENON_TYPE_MISMATCH,
                "[%s] expected %s, got %s, which is stored only; convert it to a dtype with "
                "arithmetic first, such as float32",
                short_name(op), dtype_list(op.def.dtype_mask).c_str(), dtype_name(compute));
  if (!(op.def.dtype_mask >> compute & 1))
    return fail(plan.err, TENON_TYPE_MISMATCH, "[%s] expected %s, got %s; convert with .to(dtype)",
                short_name(op), dtype_list(op.def.dtype_mask).c_str(), dtype_name(compute));
  plan.compute = compute;
  return TENON_OK;
}

tenon_status wrap_scalars(Plan& plan) {
  Operator& op = plan.op;
  for (uint32_t i = 0; i < op.def.nparams; ++i) {
    if (!is_scalar_tag(plan.args[i].tag) || op.def.params[i].kind != TENON_PARAM_TENSOR) continue;
    if (plan.scalar_count == std::size(plan.scalars))
      return fail(plan.err, TENON_UNSUPPORTED, "[%s] more than %zu numbers given for tensors",
                  short_name(op), std::size(plan.scalars));
    int32_t dtype = op.def.params[i].flags & TENON_PARAM_FLAG_PROMOTE && plan.compute >= 0
                        ? plan.compute
                        : dtype_of_number(plan.compute, scalar_class(plan.args[i].tag));
    if (is_storage(dtype))
      return fail(plan.err, TENON_TYPE_MISMATCH,
                  "[%s] argument `%s`: expected a tensor of dtype %s, which is stored only, got a "
                  "number; convert a tensor of numbers to it",
                  short_name(op), op.def.params[i].name, dtype_name(dtype));
    if (!holds_number(dtype, plan.args[i]))
      return fail(plan.err, TENON_INVALID_ARGUMENT, "[%s] %s", short_name(op),
                  out_of_integer_range(dtype, dtype_name(dtype), plan.args[i].v.i).c_str());
    HostScalar& scalar = plan.scalars[plan.scalar_count++];
    scalar.set(plan.args[i], dtype, *plan.device);
    plan.own_values()[i] = boxed(&scalar.view);
  }
  return TENON_OK;
}

}  // namespace

tenon_status broadcast_shapes(const Operator& op, const tenon_value* values, int32_t* ndim,
                              int64_t* shape, tenon_err* err) {
  int32_t rank = 0;
  for (uint32_t i = 0; i < op.def.nparams; ++i)
    if (const tenon_tensor* tensor = as_tensor(values[i]);
        tensor && op.def.params[i].flags & TENON_PARAM_FLAG_BROADCAST)
      rank = std::max(rank, tensor->ndim);
  std::fill_n(shape, rank, int64_t{1});
  for (uint32_t i = 0; i < op.def.nparams; ++i) {
    const tenon_tensor* tensor = as_tensor(values[i]);
    if (!tensor || !(op.def.params[i].flags & TENON_PARAM_FLAG_BROADCAST)) continue;
    for (int32_t axis = 0; axis < tensor->ndim; ++axis) {
      int64_t& size = shape[rank - tensor->ndim + axis];
      if (tensor->shape[axis] == size || tensor->shape[axis] == 1) continue;
      if (size != 1) {
        std::string shapes;
        for (uint32_t k = 0; k < op.def.nparams; ++k)
          if (const tenon_tensor* other = as_tensor(values[k]))
            shapes += (shapes.empty() ? "" : " and ") + shape_text(*other);
        return fail(err, TENON_INVALID_ARGUMENT,
                    "[%s] expected shapes that broadcast, got %s: sizes %lld and %lld differ and "
                    "neither is 1",
                    short_name(op), shapes.c_str(), static_cast<long long>(size),
                    static_cast<long long>(tensor->shape[axis]));
      }
      size = tensor->shape[axis];
    }
  }
  *ndim = rank;
  return TENON_OK;
}

namespace {

tenon_status find_output_shapes(Plan& plan) {
  Operator& op = plan.op;
  TENON_TRY(wrap_scalars(plan));
  if (op.def.shape == TENON_SHAPE_BROADCAST) {
    tenon_meta& meta = plan.metas[0];
    TENON_TRY(broadcast_shapes(op, plan.values, &meta.ndim, meta.shape, plan.err));
    meta.kind = TENON_META_NEW;
    meta.dtype = static_cast<uint8_t>(output_dtype(op, plan.compute));
    plan.has_metas = true;
    return TENON_OK;
  }
  if (!op.can_infer()) return TENON_OK;
  TENON_TRY(op.infer(plan.values, plan.metas, plan.err));
  // Where shapes depend on data, it has checked the arguments alone.
  if (op.def.flags & TENON_OP_DATA_DEPENDENT) return TENON_OK;
  plan.has_metas = true;
  for (uint32_t i = 0; i < op.def.nouts; ++i) {
    const tenon_meta& meta = plan.metas[i];
    int64_t numel;
    if (!is_dtype(meta.dtype))
      return fail(plan.err, TENON_INTERNAL, "[%s] its shape rule gave dtype id %u", short_name(op),
                  meta.dtype);
    tenon_status status = count_elements(meta.ndim, meta.shape, &numel, plan.err);
    if (status != TENON_OK) return fail_rule(plan, status);
  }
  return TENON_OK;
}

tenon_status check_given_outputs(const Plan& plan) {
  for (uint32_t i = 0; i < plan.op.def.nouts; ++i) {
    if (plan.outs[i].tag == TENON_VALUE_NONE) continue;
    const tenon_tensor* out = as_tensor(plan.outs[i]);
    const char* name = short_name(plan.op);
    if (!out)
      return fail(plan.err, TENON_TYPE_MISMATCH, "[%s] expected a Tensor for out, got %s", name,
                  value_kind_name(plan.outs[i].tag));
    if (out->flags & TENON_TENSOR_READONLY)
      return fail(plan.err, TENON_INVALID_ARGUMENT,
                  "[%s] the output is read-only; write into a clone()", name);
    if (out->device != plan.device->id)
      return fail(plan.err, TENON_INVALID_ARGUMENT, "[%s] expected an output on %s, got one on %s",
                  name, plan.device->name, device_name(out->device).c_str());
    if (may_overlap_itself(*out))
      return fail(
          plan.err, TENON_INVALID_ARGUMENT,
          "[%s] elements of the output share memory (it was expanded); write into a clone()", name);
    if (!plan.has_metas) continue;  // checked when the result is there
    const tenon_meta& meta = plan.metas[i];
    TENON_TRY(check_output_fits(plan, *out, meta.ndim, meta.shape, meta.dtype));
  }
  return TENON_OK;
}

}  // namespace

tenon_status plan_dtype(Plan& plan) {
  TENON_TRY(find_call_device(plan));
  if (plan.op.def.compute == TENON_COMPUTE_OUTPUT) TENON_TRY(find_output_shapes(plan));
  return find_compute_dtype(plan);
}

tenon_status plan_call(Plan& plan) {
  TENON_TRY(plan_dtype(plan));
  if (plan.op.def.compute != TENON_COMPUTE_OUTPUT) TENON_TRY(find_output_shapes(plan));
  return check_given_outputs(plan);
}

tenon_status check_output_fits(const Plan& plan, const tenon_tensor& out, int32_t ndim,
                               const int64_t* shape, int32_t dtype) {
  const char* name = short_name(plan.op);
  if (!same_shape(out, ndim, shape))
    return fail(plan.err, TENON_INVALID_ARGUMENT, "[%s] expected an output of shape %s, got %s",
                name, shape_text(ndim, shape).c_str(), shape_text(out).c_str());
  const bool stored_otherwise = is_storage(out.dtype) && out.dtype != dtype;
  if (dtype_class(dtype) > dtype_class(out.dtype) || stored_otherwise)
    return fail(plan.err, TENON_TYPE_MISMATCH,
                "[%s] the result is %s and does not fit an output of dtype %s; convert the "
                "result instead",
                name, dtype_name(dtype), dtype_name(out.dtype));
  return TENON_OK;
}

}  // namespace tenon::core
