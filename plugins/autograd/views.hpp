// SPDX-License-Identifier: Apache-2.0
// Views and writes. A write into a view changes its base, and a write into a base changes its
// views:
//
//   base' = write(base, view')     the base's new history; `view'` is the result that was written
//   view' = take(base')            a view's new history, made when the view is next used
//
// Both are linear maps between a base and the window that a view shows of it, and so are their
// gradients; what the operator that made the view was does not matter.
#pragma once

#include "node.hpp"

namespace tenon::autograd {

// The tensor's variable, or NULL if it has no gradient. If the tensor is a view whose base was
// written since, or got its first history since, its history is made anew first.
tenon_status current_view_variable(tenon_tensor* view, Variable** out, tenon_err* err);
inline tenon_status current_variable(tenon_tensor* tensor, Variable** out, tenon_err* err) {
  Variable* variable = *out = variable_of(tensor);
  bool may_be_old = variable ? variable->flags & Variable::kView : follows_base(*tensor);
  if (!may_be_old) [[likely]]
    return TENON_OK;
  return current_view_variable(tensor, out, err);
}

// Does the tensor's history come from its base when it is next asked for?
inline bool inherits_history(const tenon_tensor* tensor) {
  if (!follows_base(*tensor) || tensor->layers & place.bit) return false;
  const tenon_tensor* base = host->tensor_base(tensor);
  return base && base->layers & place.bit;
}

// May `tensor` be written to while recording? `is_argument`: it is also read, or wholly overwritten
// by a copy; otherwise it is a pure output. Fails for leaves, for tensors that the new history
// could not describe, and for pure outputs with history.
tenon_status check_writable(const char* operation, tenon_tensor* tensor, bool is_argument,
                            tenon_err* err);

// `tensor` was written to. Make `fresh` (NULL: a constant) its history instead of what it had, and
// tell its base. Takes over one reference to the node of `fresh`.
tenon_status set_history(tenon_tensor* tensor, Variable* fresh, tenon_err* err);

// Mark the history of a fresh view, so that writes to its base are noticed.
inline void mark_view(const tenon_tensor* tensor, Variable& variable) {
  variable.flags |= Variable::kView;
  variable.version = host->tensor_version(tensor);
}

// True if the tensor or its base has a history.
bool has_history(const tenon_tensor* tensor);

}  // namespace tenon::autograd
