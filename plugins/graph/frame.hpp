// SPDX-License-Identifier: Apache-2.0
// What is being recorded: the program or one region of it, and which tensor stands for which value.
#pragma once

#include <optional>
#include <unordered_map>

#include "ir.hpp"

namespace tenon::graph {

// Where a tensor's elements are. Two tensors with the same layout show the same elements.
struct Layout {
  explicit Layout(const tenon_tensor& tensor);
  bool operator==(const Layout&) const = default;

  const void* storage;
  const char* first;  // address of the first element, or a number like it
  Type type;
  std::vector<int64_t> strides;
};

class Frame {
 public:
  // The value that the tensor stands for, if it is what it was when it was seen.
  std::optional<ValueId> find(const tenon_tensor* tensor) const;
  // A value with the same elements, under another handle.
  std::optional<ValueId> find_same(const Layout& layout) const;
  // A value whose memory the layout shares.
  std::optional<ValueId> find_sharing(const Layout& layout) const;
  bool knows_storage(const void* storage) const { return by_storage_.contains(storage); }

  // From here on the tensor, which is kept alive, stands for the value.
  void bind(tenon_tensor* tensor, ValueId value);
  // A new value for the tensor.
  ValueId add(tenon_tensor* tensor);

  // Lets go of the tensors that only the frame and `made` hold, where all of their memory is theirs: no call can name them
  // again. What comes to lie at their addresses is something new.
  void forget_unreachable(std::vector<Tensor>& made);

  const Layout& layout(ValueId value) const { return layouts_.at(value); }
  tenon_tensor* handle(ValueId value) const { return handles_.at(value).get(); }
  std::vector<Tensor>& kept() { return kept_; }
  template <class Visit>
  void for_each_storage(Visit&& visit) const {
    for (const auto& entry : by_storage_) visit(entry.first);
  }

  Graph graph;
  std::vector<ValueId> imports;  // values of the outer frame that became inputs, in their order
  bool is_suspended = false;     // calls run, and are not recorded

 private:
  std::unordered_map<const tenon_tensor*, ValueId> known_;
  std::unordered_map<const void*, std::vector<ValueId>> by_storage_;
  std::unordered_map<ValueId, Layout> layouts_;
  std::unordered_map<ValueId, Tensor> handles_;
  std::vector<Tensor> kept_;  // no address is used twice as long as a value is known by it
};

}  // namespace tenon::graph
