// SPDX-License-Identifier: Apache-2.0
#include "frame.hpp"

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

bool Layout::is_of(const tenon_tensor& tensor) const {
  return first == first_of(tensor) && type.dtype == tensor.dtype && type.device == tensor.device &&
         type.shape.size() == static_cast<size_t>(tensor.ndim) &&
         std::equal(type.shape.begin(), type.shape.end(), tensor.shape) &&
         std::equal(strides.begin(), strides.end(), tensor.strides) &&
         storage == host->tensor_storage(&tensor);
}

std::optional<ValueId> Frame::find(const tenon_tensor* tensor) const {
  const ValueId value = by_tensor_.find(tensor);
  if (value == PointerTable::kNone || !layout(value).is_of(*tensor)) return {};
  return value;
}

std::optional<ValueId> Frame::find_same(const Layout& wanted) const {
  for (ValueId value = by_storage_.find(wanted.storage); value != kNoValueId;
       value = known_[value].next)
    if (layout(value) == wanted) return value;
  return {};
}

std::optional<ValueId> Frame::find_sharing(const Layout& wanted) const {
  const ValueId value = by_storage_.find(wanted.storage);
  if (value == PointerTable::kNone) return {};
  return value;
}

void Frame::bind(tenon_tensor* tensor, ValueId value) {
  bound_.push_back({Tensor::borrow(tensor), value});
  by_tensor_[tensor] = value;
}

ValueId Frame::add(tenon_tensor* tensor) {
  known_.push_back({.layout = Layout(*tensor), .handle = Tensor::borrow(tensor)});
  const ValueId value = graph.add_value(known_.back().layout.type);
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
  const void* storage = layout(value).storage;
  if (!storage) return;
  ValueId& first = by_storage_[storage];
  if (first == PointerTable::kNone) {
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
  const PointerTable before = std::exchange(by_tensor_, {});
  before.for_each([&](const void* tensor, ValueId value) {
    if (!unreachable.contains(tensor)) by_tensor_[tensor] = value;
  });
  by_storage_ = {};
  for (ValueId value = 0; value < known_.size(); ++value) {
    Known& known = known_[value];
    known.next = known.last = kNoValueId;
    if (dropped.contains(known.layout.storage)) known.layout.storage = nullptr;
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
