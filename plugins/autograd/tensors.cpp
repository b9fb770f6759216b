// SPDX-License-Identifier: Apache-2.0
#include "tensors.hpp"

#include <algorithm>

#include "hooks.hpp"
#include "operators.hpp"
#include "views.hpp"

namespace tenon::autograd {
namespace {

// The variable that holds the tensor's .grad, made if there is none. NULL: out of memory.
Variable* leaf_of(tenon_tensor* tensor) {
  if (Variable* known = variable_in_slot(tensor)) return known;
  Variable* variable = new_leaf();
  if (variable) host->ext_set(tensor, place.slot, variable);
  return variable;
}

}  // namespace

int32_t requires_grad(const tenon_tensor* tensor) {
  return tensor->layers & place.bit || inherits_history(tensor);
}

tenon_status set_requires_grad(tenon_tensor* tensor, int32_t on, tenon_err* err) {
  Variable* variable;
  TENON_TRY(current_variable(tensor, &variable, err));
  if (!variable && !on) return TENON_OK;
  if (variable && !variable->node().is_leaf()) {
    if (on) return TENON_OK;
    return fail_format(
        err, TENON_FAILED_PRECONDITION,
        "requires_grad can be turned off for leaf tensors only, this is a result of [%s]; "
        "use detach()",
        short_name(variable->node().name()));
  }
  if (on && !is_differentiable(tensor->dtype))
    return fail_format(err, TENON_TYPE_MISMATCH,
                       "requires_grad: expected a floating dtype, got %s; convert the tensor first",
                       host->dtype_name(tensor->dtype));
  variable = leaf_of(tensor);
  if (!variable) return fail_host_memory(err);
  variable->attachment->takes_grad.store(on != 0, std::memory_order_relaxed);
  host->tensor_set_layer(tensor, place.layer, on != 0);
  if (follows_base(*tensor)) mark_view(tensor, *variable);
  return TENON_OK;
}

int32_t is_leaf(const tenon_tensor* tensor) {
  Variable* variable = variable_of(tensor);
  return variable ? variable->node().is_leaf() : !inherits_history(tensor);
}

tenon_tensor* grad(const tenon_tensor* tensor) {
  Variable* variable = variable_in_slot(tensor);
  return variable && variable->attachment
             ? variable->attachment->grad.load(std::memory_order_acquire)
             : nullptr;
}

tenon_status set_grad(tenon_tensor* tensor, tenon_tensor* grad, tenon_err* err) {
  if (grad == tensor && grad)
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "set_grad: a tensor cannot be its own gradient");
  if (grad && (grad->ndim != tensor->ndim || grad->dtype != tensor->dtype ||
               grad->device != tensor->device ||
               !std::equal(tensor->shape, tensor->shape + tensor->ndim, grad->shape)))
    return fail_format(
        err, TENON_INVALID_ARGUMENT,
        "set_grad: expected a gradient of shape %s and dtype %s on the tensor's device, "
        "got shape %s and dtype %s",
        shape_text(tensor->ndim, tensor->shape).c_str(), host->dtype_name(tensor->dtype),
        shape_text(grad->ndim, grad->shape).c_str(), host->dtype_name(grad->dtype));
  if (!grad && !variable_in_slot(tensor)) return TENON_OK;
  Variable* variable = leaf_of(tensor);
  Attachment* attachment = variable ? attachment_of(*variable) : nullptr;
  if (!attachment) return fail_host_memory(err);
  if (grad) host->tensor_retain(grad);
  host->tensor_release(attachment->grad.exchange(grad, std::memory_order_acq_rel));
  return TENON_OK;
}

const char* grad_fn(const tenon_tensor* tensor) {
  Variable* variable;  // of views that gradients cannot follow, what they had
  if (current_variable(const_cast<tenon_tensor*>(tensor), &variable, nullptr) != TENON_OK)
    variable = variable_of(tensor);
  return variable && !variable->node().is_leaf() ? variable->node().name() : nullptr;
}

const void* node_of(const tenon_tensor* tensor) {
  Variable* variable = variable_of(tensor);
  return variable && !variable->node().is_leaf() ? &variable->node() : nullptr;
}

tenon_status retain_grad(tenon_tensor* tensor, tenon_err* err) {
  Variable* variable;
  TENON_TRY(current_variable(tensor, &variable, err));
  if (!variable)
    return fail_format(err, TENON_FAILED_PRECONDITION,
                       "retain_grad needs a tensor that requires grad, got one that does not; set "
                       "requires_grad first");
  if (variable->node().is_leaf()) return TENON_OK;
  if (!attachment_of(*variable)) return fail_host_memory(err);
  variable->flags |= Variable::kRetainsGrad;
  return TENON_OK;
}

tenon_status detach(tenon_tensor* tensor, tenon_tensor** out, tenon_err* err) {
  Tensor result;
  TENON_TRY(alias(tensor, &result, err));
  *out = result.release();
  return TENON_OK;
}

}  // namespace tenon::autograd
