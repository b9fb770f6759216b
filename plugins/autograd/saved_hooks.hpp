// SPDX-License-Identifier: Apache-2.0
// Tensors that nodes keep for backward in the form that a user's functions gave them: on another
// device, in a file, or not at all, to be computed again.
#pragma once

#include "node.hpp"

namespace tenon::autograd {

// The innermost hooks of this thread; NULL: nodes keep the tensors themselves.
inline constinit thread_local const tenon_saved_hooks* saved_hooks = nullptr;

// Makes other hooks the innermost ones for a scope.
class SavedHooksScope {
 public:
  explicit SavedHooksScope(const tenon_saved_hooks* hooks)
      : before_(std::exchange(saved_hooks, hooks)) {}
  ~SavedHooksScope() { saved_hooks = before_; }
  SavedHooksScope(const SavedHooksScope&) = delete;

 private:
  const tenon_saved_hooks* before_;
};

// What pack() made of a tensor, and what the tensor looked like.
class Packed {
 public:
  // Through the hooks of this thread, of which there must be some.
  static tenon_status make(tenon_tensor* tensor, Packed** out, tenon_err* err);
  ~Packed() { drop_(content_); }
  Packed(const Packed&) = delete;

  // The tensor. Its history is `history`, or none; tensors that the user holds are left alone.
  tenon_status unpack(Variable* history, const char* operation, Tensor* out, tenon_err* err) const;

 private:
  Packed() = default;

  void* content_;
  tenon_status (*unpack_)(void* content, tenon_tensor** out, tenon_err* err);
  void (*drop_)(void* content);
  tenon_device_id device_;
  int32_t dtype_;
  int32_t ndim_;
  int64_t shape_[TENON_MAX_NDIM];
};

// Let hooks pack every tensor that a node of an operator has kept. Call it while there are hooks.
tenon_status pack_saved(Node& node, tenon_err* err);

// -- service function
// ------------------------------------------------------------------------------
const tenon_saved_hooks* set_saved_hooks(const tenon_saved_hooks* hooks);

}  // namespace tenon::autograd
