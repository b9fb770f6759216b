// SPDX-License-Identifier: Apache-2.0
#include "frame.hpp"

#include <unordered_set>

namespace tenon::graph {

Layout::Layout(const tenon_tensor& tensor)
    : storage(host->tensor_storage(&tensor)),
      first(static_cast<const char*>(tensor.data) + tensor.byte_offset),
      type(type_of(tensor)),
      strides(tensor.strides, tensor.strides + tensor.ndim) {}

std::optional<ValueId> Frame::find(const tenon_tensor* tensor) const {
  auto known = known_.find(tensor);
  if (known == known_.end() || layout(known->second) != Layout(*tensor)) return {};
  return known->second;
}

std::optional<ValueId> Frame::find_same(const Layout& wanted) const {
  auto sharing = by_storage_.find(wanted.storage);
  if (sharing == by_storage_.end()) return {};
  for (ValueId value : sharing->second)
    if (layout(value) == wanted) return value;
  return {};
}

std::optional<ValueId> Frame::find_sharing(const Layout& wanted) const {
  auto sharing = by_storage_.find(wanted.storage);
  if (sharing == by_storage_.end()) return {};
  return sharing->second.front();
}

void Frame::bind(tenon_tensor* tensor, ValueId value) {
  kept_.push_back(Tensor::borrow(tensor));
  known_[tensor] = value;
}

ValueId Frame::add(tenon_tensor* tensor) {
  const ValueId value = graph.add_value(type_of(*tensor));
  bind(tensor, value);
  handles_.emplace(value, Tensor::borrow(tensor));
  const Layout& layout = layouts_.emplace(value, Layout(*tensor)).first->second;
  if (layout.storage) by_storage_[layout.storage].push_back(value);
  return value;
}

void Frame::forget_unreachable(std::vector<Tensor>& made) {
  std::unordered_map<const tenon_tensor*, uint32_t> references;  // of ours
  for (const Tensor& tensor : kept_) ++references[tensor.get()];
  for (const auto& [value, tensor] : handles_) ++references[tensor.get()];
  for (const Tensor& tensor : made) ++references[tensor.get()];
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
  std::unordered_set<const tenon_tensor*> unreachable;
  for (const auto& [tensor, count] : references) {
    const void* storage = host->tensor_storage(tensor);
    const auto here = held_here.find(storage);
    if (storage && here != held_here.end() &&
        host->tensor_storage_use_count(tensor) == here->second)
      unreachable.insert(tensor);
  }
  for (const tenon_tensor* tensor : unreachable) {
    known_.erase(tensor);
    const auto sharing = by_storage_.find(host->tensor_storage(tensor));
    if (sharing == by_storage_.end()) continue;
    for (ValueId value : sharing->second) layouts_.erase(value);
    by_storage_.erase(sharing);
  }
  auto is_unreachable = [&](const Tensor& tensor) { return unreachable.contains(tensor.get()); };
  std::erase_if(handles_, [&](const auto& entry) { return is_unreachable(entry.second); });
  std::erase_if(kept_, is_unreachable);
  std::erase_if(made, is_unreachable);
}

}  // namespace tenon::graph
