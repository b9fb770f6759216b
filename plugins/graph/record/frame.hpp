// SPDX-License-Identifier: Apache-2.0
// What is being recorded: the program or one region of it, and which tensor stands for which value.
#pragma once

#include <optional>
#include <unordered_map>

#include "ir/graph.hpp"
#include "support/pointer_map.hpp"

namespace tenon::graph {

// Where a tensor's elements are. Two tensors with the same layout show the same elements.
struct Layout {
  Layout() = default;
  explicit Layout(const tenon_tensor& tensor);
  bool operator==(const Layout&) const = default;

  const void* storage = nullptr;
  const char* first = nullptr;  // address of the first element, or a number like it
  Type type;
  Axes strides;
};

class Frame {
 public:
  // The value that the tensor stands for, if it is what it was when it was seen.
  std::optional<ValueId> find(const tenon_tensor* tensor) const;
  // A value with the same elements, under another handle.
  std::optional<ValueId> find_same(const Layout& layout) const;
  // A value whose memory the layout shares.
  std::optional<ValueId> find_sharing(const Layout& layout) const;
  bool knows_storage(const void* storage) const {
    return by_storage_.find(storage) != PointerMap::kNone;
  }

  // From here on the tensor, which is kept alive, stands for the value.
  void bind(tenon_tensor* tensor, ValueId value);
  // A new value for the tensor.
  ValueId add(tenon_tensor* tensor);
  // A new value for the result of a step, which has memory of its own.
  ValueId add_made(tenon_tensor* tensor);
  void set_unrecorded(ValueId value) { known_[value].is_unrecorded = true; }
  bool is_unrecorded(ValueId value) const { return known_[value].is_unrecorded; }

  // Lets go of the tensors that only the frame holds, where all of their memory is theirs: no call can name them again. What
  // comes to lie at their addresses is something new.
  void forget_unreachable();
  // Bytes of the results that it holds.
  int64_t made_bytes() const;
  // The results that it holds. Nothing is known afterwards.
  std::vector<Tensor> take_made();
  // All tensors that it holds.
  std::vector<Tensor> take_kept();

  Layout layout(ValueId value) const;
  tenon_tensor* handle(ValueId value) const { return known_[value].handle.get(); }
  template <class Visit>
  void for_each_storage(Visit&& visit) const {
    by_storage_.for_each([&](const void* storage, ValueId) { visit(storage); });
  }

  Graph graph;
  std::vector<ValueId> imports;  // values of the outer frame that became inputs, in their order
  bool is_suspended = false;     // calls run, and are not recorded
  // Storages of outer frames that are stale here, each with NULL, and those of the clones that stand for them, each with
  // the storage that it stands for.
  std::unordered_map<const void*, const void*> hidden;

 private:
  struct Known {  // and the type in the graph
    const void* storage = nullptr;
    const char* first = nullptr;
    Axes strides;
    Tensor handle;  // no address is used twice as long as a value is known by it; empty: forgotten
    ValueId next = kNoValueId;  // with the same storage
    ValueId last = kNoValueId;  // with the same storage; of the first one with it
    bool is_made = false;
    bool is_unrecorded = false;  // made without gradients
  };
  struct Bound {
    Tensor handle;
    ValueId value;
  };
  bool shows(ValueId value, const tenon_tensor& tensor) const;  // layout(value) == Layout(tensor)
  void add_to_storage(ValueId value);

  std::vector<Known> known_;  // by value
  std::vector<Bound> bound_;  // further handles
  PointerMap by_tensor_;      // values
  PointerMap by_storage_;     // the first value of each
};

}  // namespace tenon::graph
