// SPDX-License-Identifier: Apache-2.0
// What few variables carry: .grad, and functions that see a gradient pass.
#pragma once

#include <memory>
#include <vector>

#include "node.hpp"

namespace tenon::autograd {

struct Hook {
  uint64_t id;
  tenon_grad_hook_fn call;
  void* user;
  tenon_drop_fn drop;

  ~Hook() {
    if (drop) drop(user);
  }
};

struct Attachment {
  std::atomic<tenon_tensor*> grad{nullptr};  // owned
  std::atomic<bool> takes_grad{true};        // false: .grad is not reachable or not wanted
  std::vector<std::shared_ptr<Hook>> hooks;  // in the order of their making
  std::vector<std::shared_ptr<Hook>> after_accumulate;  // of leaves; these see .grad
};

// How many hooks of all leaves run after .grad has its sum: a pass without any counts nothing.
inline std::atomic<uint32_t> after_accumulate_hooks{0};

// The variable's attachment, made if it has none. NULL: out of memory.
Attachment* attachment_of(Variable& variable);
void delete_attachment(Attachment* attachment);
void drop_grad(Attachment& attachment);

// Pass `gradient` through the variable's hooks; each may replace it.
tenon_status run_hooks(Variable& variable, Tensor& gradient, tenon_err* err);
// Let the leaf's hooks see its .grad, which has the whole gradient of a pass.
tenon_status run_hooks_after_accumulate(Variable& leaf, tenon_err* err);

// -- service functions
// -----------------------------------------------------------------------------
tenon_status hook_add(tenon_tensor* tensor, tenon_grad_hook_fn call, void* user, tenon_drop_fn drop,
                      uint64_t* id, tenon_err* err);
tenon_status hook_add_after_accumulate(tenon_tensor* leaf, tenon_grad_hook_fn call, void* user,
                                       tenon_drop_fn drop, uint64_t* id, tenon_err* err);
tenon_status hook_remove(tenon_tensor* tensor, uint64_t id, tenon_err* err);

}  // namespace tenon::autograd
