// SPDX-License-Identifier: Apache-2.0
#include "record/frame.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tenon::graph {
namespace {

const char* first_of(const tenon_tensor& tensor) {
  return static_cast<const char*>(tensor.data) + tensor.byte_offset;
}

}  // namespace

Layout::Layout(const tenon_tensor& tensor)
    : storage(host->tensor_storage(&tensor)),
      first(first_of(tensor)),
      type(type_of(tensor)),
      strides(tensor.strides, tensor.strides + tensor.ndim) {}

Layout Frame::layout(ValueId value) const {
  Layout layout;
  layout.storage = known_[value].storage;
  layout.first = known_[value].first;
  layout.type = graph.values[value];
  layout.strides = known_[value].strides;
  return layout;
}

bool Frame::shows(ValueId value, const tenon_tensor& tensor) const {
  const Known& known = known_[value];
  const Type& type = graph.values[value];
  if (known.first != first_of(tensor) || type.dtype != tensor.dtype ||
      type.device != tensor.device || type.shape.size() != static_cast<size_t>(tensor.ndim) ||
      known.storage != host->tensor_storage(&tensor))
    return false;
  const int64_t *shape = type.shape.data(), *strides = known.strides.data();
  for (int32_t axis = 0; axis < tensor.ndim; ++axis)
    if (shape[axis] != tensor.shape[axis] || strides[axis] != tensor.strides[axis]) return false;
  return true;
}

std::optional<ValueId> Frame::find(const tenon_tensor* tensor) const {
  const ValueId value = by_tensor_.find(tensor);
  if (value == PointerMap::kNone || !shows(value, *tensor)) return {};
  return value;
}

std::optional<ValueId> Frame::find_same(const Layout& wanted) const {
  for (ValueId value = by_storage_.find(wanted.storage); value != kNoValueId;
       value = known_[value].next) {
    const Known& known = known_[value];
    if (known.first == wanted.first && known.strides == wanted.strides &&
        graph.values[value] == wanted.type)
      return value;
  }
  return {};
}

std::optional<ValueId> Frame::find_sharing(const Layout& wanted) const {
  const ValueId value = by_storage_.find(wanted.storage);
  if (value == PointerMap::kNone) return {};
  return value;
}

void Frame::bind(tenon_tensor* tensor, ValueId value) {
  bound_.push_back({Tensor::borrow(tensor), value});
  by_tensor_[tensor] = value;
}

ValueId Frame::add(tenon_tensor* tensor) {
  const auto value = static_cast<ValueId>(graph.values.size());
  Type& type = graph.values.emplace_back();
  type.dtype = tensor->dtype;
  type.device = tensor->device;
  type.shape.assign(tensor->shape, tensor->shape + tensor->ndim);
  Known& known = known_.emplace_back();
  known.storage = host->tensor_storage(tensor);
  known.first = first_of(*tensor);
  known.strides.assign(tensor->strides, tensor->strides + tensor->ndim);
  known.handle = Tensor::borrow(tensor);
  by_tensor_[tensor] = value;
  add_to_storage(value);
  return value;
}

ValueId Frame::add_made(tenon_tensor* tensor) {
  const ValueId value = add(tensor);
  known_[value].is_made = true;
  return value;
}

void Frame::add_to_storage(ValueId value) {
  const void* storage = known_[value].storage;
  if (!storage) return;
  ValueId& first = by_storage_[storage];
  if (first == PointerMap::kNone) {
    first = value;
  } else {
    known_[known_[first].last].next = value;
  }
  known_[first].last = value;
}

void Frame::forget_unreachable() {
  std::unordered_map<const tenon_tensor*, uint32_t> references;  // of ours
  for (const Known& known : known_)
    if (known.handle) ++references[known.handle.get()];
  for (const Bound& bound : bound_) ++references[bound.handle.get()];
  std::unordered_map<const void*, uint32_t>
      held_here;  // by storage: tensors that nothing else holds
  auto look_at = [&](const tenon_tensor* tensor, uint32_t count) {
    if (host->tensor_use_count(tensor) != count) return;
    ++held_here[host->tensor_storage(tensor)];
    const auto base = references.find(host->tensor_base(tensor));
    if (base != references.end()) ++base->second;  // which the view holds
  };
  for (const auto& [tensor, count] : references)
    if (host->tensor_base(tensor)) look_at(tensor, count);
  for (const auto& [tensor, count] : references)
    if (!host->tensor_base(tensor)) look_at(tensor, count);
  std::unordered_set<const void*> unreachable, dropped;  // tensors, and their storages
  for (const auto& [tensor, count] : references) {
    const void* storage = host->tensor_storage(tensor);
    const auto here = held_here.find(storage);
    if (storage && here != held_here.end() &&
        host->tensor_storage_use_count(tensor) == here->second) {
      unreachable.insert(tensor);
      dropped.insert(storage);
    }
  }
  if (unreachable.empty()) return;
  const PointerMap before = std::exchange(by_tensor_, {});
  before.for_each([&](const void* tensor, ValueId value) {
    if (!unreachable.contains(tensor)) by_tensor_[tensor] = value;
  });
  by_storage_ = {};
  for (ValueId value = 0; value < known_.size(); ++value) {
    Known& known = known_[value];
    known.next = known.last = kNoValueId;
    if (dropped.contains(known.storage)) known.storage = nullptr;
    add_to_storage(value);
  }
  for (Known& known : known_)
    if (unreachable.contains(known.handle.get())) known.handle = {};
  std::erase_if(bound_,
                [&](const Bound& bound) { return unreachable.contains(bound.handle.get()); });
}

int64_t Frame::made_bytes() const {
  int64_t bytes = 0;
  for (const Known& known : known_)
    if (known.is_made && known.handle)
      bytes += known.handle->numel * int64_t{host->dtype_size(known.handle->dtype)};
  return bytes;
}

std::vector<Tensor> Frame::take_made() {
  std::vector<Tensor> made;
  for (Known& known : known_)
    if (known.is_made && known.handle) made.push_back(std::move(known.handle));
  return made;
}

std::vector<Tensor> Frame::take_kept() {
  std::vector<Tensor> kept;
  for (Known& known : known_)
    if (known.handle) kept.push_back(std::move(known.handle));
  for (Bound& bound : bound_) kept.push_back(std::move(bound.handle));
  return kept;
}

}  // namespace tenon::graph
