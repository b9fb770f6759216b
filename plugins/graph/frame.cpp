// SPDX-License-Identifier: Apache-2.0
#include "frame.hpp"

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

}  // namespace tenon::graph
