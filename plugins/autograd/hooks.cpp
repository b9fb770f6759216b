// SPDX-License-Identifier: Apache-2.0
#include "hooks.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "operators.hpp"
#include "support.hpp"
#include "views.hpp"

namespace tenon::autograd {
namespace {

bool fits(const tenon_tensor& replacement, const tenon_tensor& gradient) {
  return replacement.ndim == gradient.ndim && replacement.dtype == gradient.dtype &&
         replacement.device == gradient.device &&
         std::equal(gradient.shape, gradient.shape + gradient.ndim, replacement.shape);
}

}  // namespace

Attachment* attachment_of(Variable& variable) {
  if (!variable.attachment) variable.attachment = new (std::nothrow) Attachment;
  return variable.attachment;
}

void delete_attachment(Attachment* attachment) {
  drop_grad(*attachment);
  after_accumulate_hooks.fetch_sub(static_cast<uint32_t>(attachment->after_accumulate.size()),
                                   std::memory_order_relaxed);
  delete attachment;
}

void drop_grad(Attachment& attachment) {
  host->tensor_release(attachment.grad.exchange(nullptr, std::memory_order_acq_rel));
}

tenon_status run_hooks(Variable& variable, Tensor& gradient, tenon_err* err) {
  if (!variable.attachment || variable.attachment->hooks.empty()) return TENON_OK;
  auto hooks = variable.attachment->hooks;  // a hook may add or remove hooks
  for (const auto& hook : hooks) {
    if (!is_unshared(gradient.get())) {  // another branch may have it, and a hook may write
      Tensor own;
      TENON_TRY(clone(gradient, &own, err));
      gradient = std::move(own);
    }
    tenon_tensor* replacement = nullptr;
    tenon_status status = hook->call(hook->user, gradient.get(), &replacement, err);
    if (status != TENON_OK) {
      add_context(err, "hook on the gradient of a result of [%s]", variable.node().name());
      return status;
    }
    if (!replacement) continue;
    Tensor owned = Tensor::adopt(replacement);
    if (!fits(*owned.get(), *gradient.get()))
      return fail_format(
          err, TENON_INVALID_ARGUMENT,
          "hook on the gradient of a result of [%s]: expected a replacement of shape %s "
          "and dtype %s on the "
          "same device, got shape %s and dtype %s",
          variable.node().name(), shape_text(gradient->ndim, gradient->shape).c_str(),
          host->dtype_name(gradient->dtype), shape_text(owned->ndim, owned->shape).c_str(),
          host->dtype_name(owned->dtype));
    gradient = std::move(owned);
  }
  return TENON_OK;
}

tenon_status run_hooks_after_accumulate(Variable& leaf, tenon_err* err) {
  auto hooks = leaf.attachment->after_accumulate;  // a hook may add or remove hooks
  for (const auto& hook : hooks) {
    Tensor grad = Tensor::borrow(leaf.attachment->grad.load(std::memory_order_acquire));
    if (!grad) return TENON_OK;  // a hook took it
    tenon_tensor* replacement = nullptr;
    tenon_status status = hook->call(hook->user, grad.get(), &replacement, err);
    host->tensor_release(replacement);
    if (status != TENON_OK) {
      add_context(err, "hook after the accumulation of a leaf's gradient");
      return status;
    }
  }
  return TENON_OK;
}

namespace {

using Hooks = std::vector<std::shared_ptr<Hook>>;

tenon_status add(Hooks& hooks, tenon_grad_hook_fn call, void* user, tenon_drop_fn drop,
                 uint64_t* id) {
  static std::atomic<uint64_t> last_id{0};
  hooks.reserve(hooks.size() + 1);
  uint64_t fresh = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
  std::shared_ptr<Hook> hook(new Hook{fresh, call, user, nullptr});
  hook->drop = drop;  // from here on the hook owns `user`
  hooks.push_back(std::move(hook));
  *id = fresh;
  return TENON_OK;
}

// The hook with this id, taken out of the list; NULL: it is not there.
std::shared_ptr<Hook> take(Hooks& hooks, uint64_t id) {
  auto found =
      std::find_if(hooks.begin(), hooks.end(), [&](const auto& hook) { return hook->id == id; });
  if (found == hooks.end()) return nullptr;
  auto hook = std::move(*found);
  hooks.erase(found);
  return hook;
}

}  // namespace

tenon_status hook_add(tenon_tensor* tensor, tenon_grad_hook_fn call, void* user, tenon_drop_fn drop,
                      uint64_t* id, tenon_err* err) {
  Variable* variable;
  TENON_TRY(current_variable(tensor, &variable, err));
  if (!variable)
    return fail_format(
        err, TENON_FAILED_PRECONDITION,
        "a hook needs a tensor that requires grad, got one that does not; set requires_grad first");
  try {
    Attachment* attachment = attachment_of(*variable);
    if (!attachment) return fail_host_memory(err);
    return add(attachment->hooks, call, user, drop, id);
  } catch (const std::bad_alloc&) {
    return fail_host_memory(err);
  }
}

tenon_status hook_add_after_accumulate(tenon_tensor* leaf, tenon_grad_hook_fn call, void* user,
                                       tenon_drop_fn drop, uint64_t* id, tenon_err* err) {
  Variable* variable;
  TENON_TRY(current_variable(leaf, &variable, err));
  if (!variable || !variable->node().is_leaf())
    return fail_format(err, TENON_FAILED_PRECONDITION,
                       "a hook after the accumulation of a gradient needs a leaf that requires "
                       "grad, got %s%s; use register_hook for results",
                       variable ? "a result of " : "a tensor that does not",
                       variable ? short_name(variable->node().name()) : "");
  try {
    TENON_TRY(add(variable->attachment->after_accumulate, call, user, drop, id));
    after_accumulate_hooks.fetch_add(1, std::memory_order_relaxed);
    return TENON_OK;
  } catch (const std::bad_alloc&) {
    return fail_host_memory(err);
  }
}

tenon_status hook_remove(tenon_tensor* tensor, uint64_t id, tenon_err* err) {
  Variable* variable = variable_in_slot(tensor);
  if (variable && variable->attachment) {
    // The last use of a hook is at the end of the scope: its drop may come back here.
    if (auto hook = take(variable->attachment->hooks, id)) return TENON_OK;
    if (auto hook = take(variable->attachment->after_accumulate, id)) {
      after_accumulate_hooks.fetch_sub(1, std::memory_order_relaxed);
      return TENON_OK;
    }
  }
  return fail_format(err, TENON_NOT_FOUND,
                     "no hook with id %llu on this tensor; was it removed already?",
                     static_cast<unsigned long long>(id));
}

}  // namespace tenon::autograd
