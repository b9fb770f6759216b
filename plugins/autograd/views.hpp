// SPDX-License-Identifier: Apache-2.0
// Views, and writes into views. A write into a view changes its base, and a write into a base
// changes its views:
//
//   base' = slice_scatter(base, view')   new history of the base; `view'` is the tensor written
//   view' = slice(base')                 new history of a view, made when the view is next used
//
// Both maps are linear and depend only on the layout of the view in its base, whichever operator
// made the view. Their gradients are maps of the same kind: the backward of slice writes the
// gradient into a base of zeros, and the backward of slice_scatter zeroes the slice in the gradient
// of the base and slices the gradient of the view.
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

// True if the tensor takes its history from its base at its next use.
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
