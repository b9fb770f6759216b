// SPDX-License-Identifier: Apache-2.0
// What every file of this plugin needs: its slot and layer in the host, and questions about
// tensors.
#pragma once

#include <tenon/services/autograd.h>
#include <tenon/tensor.hpp>

namespace tenon::autograd {

// Given by the host when the plugin starts; constant from then on.
struct Place {
  int32_t slot = -1;  // extension slot of a tensor's Variable
  int32_t layer = -1;
  uint8_t bit = 0;  // 1 << layer: set in tenon_tensor.layers of every tensor with gradient
};
inline Place place;

inline constexpr uint32_t kMaxArguments = 64;  // masks in tenon_grad_rule have a bit for each
inline constexpr uint32_t kMaxResults = 8;

// "add" for "tenon::add"; other namespaces stay: how messages name an operator.
const char* short_name(const char* name);

inline tenon_tensor* as_tensor(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSOR ? static_cast<tenon_tensor*>(value.v.p) : nullptr;
}
// Is `tensor` a view that has its base's history until it has one of its own?
inline bool follows_base(const tenon_tensor& tensor) {
  return tensor.flags & TENON_TENSOR_FOLLOWS_BASE;
}

inline bool is_differentiable(int32_t dtype) {
  return dtype >= TENON_DTYPE_F8E4M3 && dtype <= TENON_DTYPE_C128;
}
inline bool is_complex(int32_t dtype) {
  return dtype == TENON_DTYPE_C64 || dtype == TENON_DTYPE_C128;
}

// True if the caller holds the only reference to this memory, so that no other tensor sees writes.
inline bool is_unshared(const tenon_tensor* tensor) {
  if (host->tensor_use_count(tensor) != 1 || tensor->flags & TENON_TENSOR_READONLY) return false;
  const tenon_tensor* base = host->tensor_base(tensor);
  // A view keeps its base alive, and so that handle too.
  if (base) return host->tensor_use_count(base) == 1 && host->tensor_storage_use_count(tensor) == 2;
  return host->tensor_storage_use_count(tensor) == 1;
}

// Writes so far. Of a tensor that is composed of others: to its elements, which another tensor may have, too.
uint32_t version_of_elements(const tenon_tensor* tensor);
inline uint32_t version_of(const tenon_tensor* tensor) {
  if (tensor->flags & TENON_TENSOR_COMPOSED) [[unlikely]]
    return version_of_elements(tensor);
  return host->tensor_version(tensor);
}
// Is it composed of others, and has a history as a whole? The parts of sparse tensors have theirs.
bool is_composed_below(const tenon_tensor& tensor);
// A tensor of the same parts as one that is composed.
tenon_status alias_composed(tenon_tensor* tensor, tenon_tensor** out, tenon_err* err);

// Turns recording on or off for a scope.
class RecordingScope {
 public:
  explicit RecordingScope(bool on) : before_(host->layer_enable(place.layer, on)) {}
  ~RecordingScope() { host->layer_enable(place.layer, before_); }
  RecordingScope(const RecordingScope&) = delete;

 private:
  int32_t before_;
};
inline bool is_recording() { return host->layer_enabled(place.layer); }

}  // namespace tenon::autograd
