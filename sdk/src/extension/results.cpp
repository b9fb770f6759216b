// SPDX-License-Identifier: Apache-2.0
// Calls from the host, and what their functions return.
#include <tenon/ops/shapes.hpp>

#include <algorithm>

#include "described.hpp"

namespace tenon::extension {
namespace {

void check_count(const char* items, size_t expected, size_t got) {
  if (expected != got)
    throw Error(TENON_INTERNAL, "expected a function that returns " + std::to_string(expected) +
                                    " " + items + ", got " + std::to_string(got));
}

void check_tensors(const Tensor* tensors, size_t count) {
  for (size_t k = 0; k < count; ++k)
    if (!tensors[k])
      throw Error(TENON_INTERNAL, "the function returned an empty Tensor for result " +
                                      std::to_string(k) + "; expected one with a value");
}

// The result is a tensor of its own, even if the function returned an argument or a view of one: an
// argument has a gradient history already, and writes to it must not change the result.
Tensor apart_from_arguments(Tensor tensor, const Call& call) {
  const void* storage = host->tensor_storage(tensor.get());
  auto shares = [&](const tenon_tensor* other) {
    return other && !(other->flags & TENON_TENSOR_HOST_SCALAR) &&
           host->tensor_storage(other) == storage;
  };
  for (uint32_t i = 0; i < call.nargs; ++i) {
    bool is_shared = shares(tenon_arg_tensor(&call.args[i]));
    const TensorList list = Argument<TensorList>::hold(call.args[i], call);
    for (uint64_t j = 0; j < list.size(); ++j) is_shared |= shares(list[j]);
    if (is_shared) return ops::clone(tensor);
  }
  return tensor;
}

// Checks that a result has the shape and dtype that the shape rule gave.
void check_shapes(const Tensor* tensors, const Described& op, const Call& call, uint32_t nouts) {
  std::vector<tenon_meta> metas(nouts);
  tenon_err* err = call::Frame::here()->err();
  if (tenon_status status =
          op.def.infer_self(call.args, call.nargs, metas.data(), nouts, err, op.def.self))
    throw Error(status, host->err_text(err));
  for (uint32_t k = 0; k < nouts; ++k) {
    const Tensor& got = tensors[k];
    const tenon_meta& expected = metas[k];
    if (got->dtype == expected.dtype && got->ndim == expected.ndim &&
        std::equal(got->shape, got->shape + got->ndim, expected.shape))
      continue;
    throw Error(TENON_INTERNAL, "result " + std::to_string(k) + ": expected " +
                                    shape_text(expected.ndim, expected.shape) + " " +
                                    host->dtype_name(expected.dtype) +
                                    " by the shape rule, the function returned " +
                                    shape_text(*got.get()) + " " + host->dtype_name(got->dtype));
  }
}

tenon_value tensor_value(Tensor&& tensor) { return boxed(tensor.release()); }

tenon_value list_value(Tensor* tensors, size_t count) {
  tenon_tensor** list = host->list_create(static_cast<uint32_t>(count));
  if (!list) throw std::bad_alloc();
  for (size_t i = 0; i < count; ++i) list[i] = tensors[i].release();
  return boxed(list, count);
}

void release(tenon_value& value) {
  if (value.tag == TENON_VALUE_TENSOR) host->tensor_release(static_cast<tenon_tensor*>(value.v.p));
  if (value.tag == TENON_VALUE_TENSORS)
    host->list_release(static_cast<tenon_tensor**>(value.v.p), value.aux);
  value = kNoValue;
}

tenon_status name_failure(const char* name, tenon_err* err) {
  host->err_context(err, name, std::strlen(name));
  return host->err_code(err);
}

}  // namespace

tenon_status run(const char* name, tenon_err* err, call::Frame::Place place, void (*body)(void*),
                 void* data) noexcept {
  call::Frame frame(err, place);
  if (guarded(err, [&] { body(data); }) != TENON_OK) return name_failure(name, err);
  frame.clear_failure();
  return TENON_OK;
}

tenon_status run_kernel(tenon_ctx* ctx, tenon_err* err, void (*body)(void*), void* data) noexcept {
  call::Frame frame(err, call::Frame::kInKernel);
  if (guarded(err, [&] { body(data); }) != TENON_OK) [[unlikely]]
    return name_failure(host->op_def(host->ctx_op(ctx))->name, err);
  frame.clear_failure();
  return TENON_OK;
}

const char* name_of(const Described& op) { return op.name(); }

tenon_status infer_like(const tenon_value* args, uint32_t, tenon_meta* outs, uint32_t nouts,
                        tenon_err* err, void* self) noexcept {
  const auto& op = *static_cast<const Described*>(self);
  const tenon_tensor* model = tenon_arg_tensor(&args[op.like]);
  if (!model)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op.name(),
                        "expected a tensor for `%s`, whose shape the result has, got none",
                        op.def.params[op.like].name);
  for (uint32_t k = 0; k < nouts; ++k) {
    shapes::set_new(outs[k], model->dtype);
    shapes::set_shape(outs[k], model->ndim, model->shape);
  }
  return TENON_OK;
}

Tensor tensor_of_number(const tenon_value& number, const Call& call) {
  const tenon_tensor* like = nullptr;
  for (uint32_t i = 0; i < call.nargs && !like; ++i) like = tenon_arg_tensor(&call.args[i]);
  int32_t dtype = TENON_DTYPE_F32;
  if (number.tag == TENON_VALUE_BOOL) dtype = TENON_DTYPE_BOOL;
  if (number.tag == TENON_VALUE_INT) dtype = TENON_DTYPE_I64;
  if (number.tag == TENON_VALUE_COMPLEX) dtype = TENON_DTYPE_C64;
  // Ids ascend from bool over integers and floats to complex numbers.
  auto rank = [](int32_t id) {
    return (id > TENON_DTYPE_BOOL) + (id > TENON_DTYPE_I64) + (id > TENON_DTYPE_F64);
  };
  if (like && rank(like->dtype) >= rank(dtype)) dtype = like->dtype;
  return ops::full({}, ScalarArg(number), dtype, like ? int32_t{like->device} : -1);
}

void give(Tensor* tensors, size_t count, const Described& op, const Call& call, tenon_value* outs,
          uint32_t nouts) {
  check_tensors(tensors, count);
  if (op.is_list()) {
    outs[0] = list_value(tensors, count);
    return;
  }
  check_count("tensors", nouts, count);
  if (!op.is_composite()) {
    for (uint32_t k = 0; k < nouts; ++k)
      tensors[k] = apart_from_arguments(std::move(tensors[k]), call);
    if (op.def.infer_self) check_shapes(tensors, op, call, nouts);
  }
  for (uint32_t k = 0; k < nouts; ++k) outs[k] = tensor_value(std::move(tensors[k]));
}

void give_from_kernel(Tensor* tensors, size_t count, const KernelContext& context, const Call& call,
                      tenon_value* outs, uint32_t nouts) {
  check_tensors(tensors, count);
  check_count("tensors", nouts, count);
  for (uint32_t k = 0; k < nouts; ++k) {
    if (tenon_tensor* given = tenon_out_tensor(&outs[k])) {
      context.check(host->tensor_copy(given, tensors[k].get(), context.err()));
      continue;
    }
    const Tensor tensor = apart_from_arguments(std::move(tensors[k]), call);
    const int64_t nothing = 0;  // its memory will be the returned tensor's
    tenon_tensor* out = nullptr;
    context.check(
        host->output_alloc(context.get(), k, tensor->dtype, 1, &nothing, &out, context.err()));
    if (out->device != tensor->device)
      throw Error(TENON_INTERNAL,
                  "the kernel returned a tensor on another device than it was called for");
    context.check(host->tensor_assign(out, tensor.get(), context.err()));
  }
}

void give_metas(const Meta* metas, size_t count, const Call& call, tenon_meta* outs,
                uint32_t nouts) {
  check_count("shapes", nouts, count);
  for (uint32_t k = 0; k < nouts; ++k) {
    const std::vector<int64_t>& shape = metas[k].shape;
    if (shape.size() > TENON_MAX_NDIM)
      throw Error(TENON_INVALID_ARGUMENT, "the shape rule: expected at most " +
                                              std::to_string(TENON_MAX_NDIM) + " dimensions, got " +
                                              std::to_string(shape.size()));
    const int32_t dtype = metas[k].dtype;
    shapes::set_new(outs[k], dtype < 0 ? shapes::first_dtype(call.args, call.nargs) : dtype);
    shapes::set_shape(outs[k], static_cast<int64_t>(shape.size()), shape.data());
  }
}

tenon_value boxed_gradient(Tensor&& gradient) {
  return gradient ? tensor_value(std::move(gradient)) : kNoValue;
}
tenon_value boxed_gradient(std::optional<Tensor>&& gradient) {
  return gradient ? boxed_gradient(std::move(*gradient)) : kNoValue;
}
tenon_value boxed_gradient(std::vector<Tensor>&& gradients) {
  return gradients.empty() ? kNoValue : list_value(gradients.data(), gradients.size());
}

void give_gradients(tenon_value* gradients, size_t count, const Described& op,
                    tenon_value* grad_args) {
  std::string fault;
  for (size_t i = 0; i < count && i < op.tensors.size() && fault.empty(); ++i) {
    const tenon_param_def& param = op.def.params[op.tensors[i]];
    const int32_t expected =
        param.kind == TENON_PARAM_TENSORS ? TENON_VALUE_TENSORS : TENON_VALUE_TENSOR;
    if (gradients[i].tag != expected && gradients[i].tag != TENON_VALUE_NONE)
      fault = std::string("the gradient of `") + param.name + "`: expected a " +
              (param.kind == TENON_PARAM_TENSORS ? "std::vector<Tensor>" : "Tensor");
  }
  const bool counts_agree = count == op.tensors.size();
  for (size_t i = 0; i < count; ++i) {
    if (counts_agree && fault.empty())
      grad_args[op.tensors[i]] = gradients[i];
    else
      release(gradients[i]);
  }
  check_count("gradients, one for each tensor parameter", op.tensors.size(), count);
  if (!fault.empty()) throw Error(TENON_INTERNAL, fault);
}

void give_gradient_vector(std::vector<Tensor>&& gradients, const Described& op,
                          tenon_value* grad_args) {
  std::vector<tenon_value> values;
  if (op.takes_list()) {
    values.push_back(boxed_gradient(std::move(gradients)));
  } else {
    for (Tensor& gradient : gradients) values.push_back(boxed_gradient(std::move(gradient)));
  }
  give_gradients(values.data(), values.size(), op, grad_args);
}

}  // namespace tenon::extension
