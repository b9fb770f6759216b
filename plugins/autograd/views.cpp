// SPDX-License-Identifier: Apache-2.0
#include "views.hpp"

#include <new>
#include <vector>

#include "hooks.hpp"
#include "operator_node.hpp"
#include "view_nodes.hpp"

namespace tenon::autograd {
namespace {

// Give `tensor` another history, or none. What asks for its .grad stays with the tensor; hooks stay
// with the value they were set on.
void replace_history(tenon_tensor* tensor, Variable* fresh) {
  Variable* old = variable_in_slot(tensor) ? detach_variable(tensor) : nullptr;
  if (fresh) {
    attach(tensor, fresh);
    if (old && old->flags & Variable::kRetainsGrad && attachment_of(*fresh)) {
      fresh->flags |= Variable::kRetainsGrad;
      fresh->attachment->grad.store(old->attachment->grad.exchange(nullptr));
    }
  }
  if (old) release(old->node());
}

// A hash of a storage, for Node::rid_of. If two storages have the same hash, a cycle may remain,
// which is a leak and no more.
uint16_t mark_of(const void* storage) {
  auto address = reinterpret_cast<uintptr_t>(storage) >> 6;
  return static_cast<uint16_t>((address ^ address >> 16) | 1);
}

// The tensor that was just written may be kept, in its former state, by a node that its new history
// leads to: tensor -> history -> node -> tensor. What was kept is useless now; letting go of it
// undoes the cycle. What a node keeps was there before the node, so that one which has been rid of
// a storage's tensors never has any again, nor do those below it: each is visited once.
void break_cycles(const tenon_tensor* written) {
  Variable* variable = variable_of(written);
  const void* storage = host->tensor_storage(written);
  if (!variable || !storage) return;
  uint16_t mark = mark_of(storage);
  try {
    std::vector<Node*> open{&variable->node()};
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      if (node->is_leaf() || node->rid_of.load(std::memory_order_relaxed) == mark) continue;
      node->rid_of.store(mark, std::memory_order_relaxed);
      forget_stale(*node, storage);
      for (uint32_t i = 0; i < node->nedges; ++i)
        if (Variable* to = node->edges()[i].to) open.push_back(&to->node());
    }
  } catch (const std::bad_alloc&) {
    // A leak at worst, and memory has run out already.
  }
}

tenon_status write_base(tenon_tensor* view, tenon_tensor* base, Variable* of_view, tenon_err* err) {
  Node* node = new_view_write_node(*view, *base, variable_of(base), of_view);
  if (!node) return fail_host_memory(err);
  retain(*node);
  replace_history(base, node->variables());
  // The view holds one handle on its base, and the owner of the base holds another.
  if (host->tensor_use_count(base) > 2) break_cycles(base);
  return TENON_OK;
}

// Does the history of a view, or of a view of a view, still begin at what its base has now? Then
// the writes were not recorded, and changed no history. A view may also be a leaf, or one of a
// leaf, in memory whose base is none, or another.
bool is_current(Variable* of_view, Variable* of_base) {
  for (Variable* at = of_view; at != of_base;) {
    Node& node = at->node();
    if (node.is_leaf()) return !of_base || of_base->node().is_leaf();
    if (!(at->flags & Variable::kView) || node.nedges != 1 || !node.edges()->to) return false;
    at = node.edges()->to;
  }
  return true;
}

tenon_status renew(tenon_tensor* view, Variable** out, tenon_err* err) {
  tenon_tensor* base = host->tensor_base(view);
  if (!base) {  // it was assigned other memory: what the view has stays
    if (*out) (*out)->version = host->tensor_version(view);
    return TENON_OK;
  }
  Variable* of_base = variable_of(base);
  if (*out && is_current(*out, of_base)) {
    (*out)->version = host->tensor_version(view);
    return TENON_OK;
  }
  if (!of_base) {
    if (*out) replace_history(view, nullptr);
    *out = nullptr;
    return TENON_OK;
  }
  TENON_TRY(check_view("view", *view, *base, ViewUse::kRead, err));
  Node* node = new_view_node(*view, *base, of_base);
  if (!node) return fail_host_memory(err);
  retain(*node);
  *out = node->variables();
  mark_view(view, **out);
  replace_history(view, *out);
  return TENON_OK;
}

}  // namespace

tenon_status current_view_variable(tenon_tensor* view, Variable** out, tenon_err* err) {
  if (*out && (*out)->version == host->tensor_version(view)) return TENON_OK;
  return renew(view, out, err);
}

bool has_history(const tenon_tensor* tensor) {
  if (tensor->layers & place.bit) return true;
  const tenon_tensor* base = host->tensor_base(tensor);
  return base && base->layers & place.bit;
}

tenon_status check_writable(const char* operation, tenon_tensor* tensor, bool is_argument,
                            tenon_err* err) {
  if (Variable* variable = variable_of(tensor)) {
    if (variable->node().is_leaf())
      return fail_format(
          err, TENON_FAILED_PRECONDITION,
          "[%s] a leaf tensor that requires grad is modified in place; expected a tensor "
          "computed from others, "
          "or recording turned off; update parameters inside no_grad(), or use the "
          "out-of-place form",
          operation);
    if (!is_argument)
      return fail_format(
          err, TENON_FAILED_PRECONDITION,
          "[%s] the output given already has a gradient history; expected a tensor without "
          "one; pass a "
          "detach()ed tensor, or use the form that returns its result",
          operation);
  }
  tenon_tensor* base = host->tensor_base(tensor);
  if (!base) return TENON_OK;
  Variable* of_base = variable_of(base);
  if (of_base && of_base->node().is_leaf())
    return fail_format(
        err, TENON_FAILED_PRECONDITION,
        "[%s] a view of a leaf tensor that requires grad is modified in place; expected a "
        "view of a tensor "
        "computed from others, or recording turned off; update parameters inside no_grad()",
        operation);
  return check_view(operation, *tensor, *base, ViewUse::kWrite, err);
}

tenon_status set_history(tenon_tensor* tensor, Variable* fresh, tenon_err* err) {
  tenon_tensor* base = host->tensor_base(tensor);
  replace_history(tensor, fresh);
  tenon_status status = TENON_OK;
  if (base && (fresh || base->layers & place.bit)) {
    if (fresh) mark_view(tensor, *fresh);
    status = write_base(tensor, base, fresh, err);
  }
  if (fresh && host->tensor_use_count(tensor) > 1) break_cycles(tensor);
  return status;
}

}  // namespace tenon::autograd
