// SPDX-License-Identifier: Apache-2.0
// Which inputs and leaves of a program may overlap memory from outside that it writes.
//
// AliasAnalysis takes all of it as one, because callers may give tensors that overlap. Here leaves are told apart by where
// they lie, and inputs are taken to lie apart from what is written, which every run then has to check.
#pragma once

#include "ir/graph.hpp"

namespace tenon::graph {

class OverlapAnalysis {
 public:
  explicit OverlapAnalysis(const Graph& graph);

  // May a write into `written` change what is read of `value`? Both are from outside.
  bool may_overlap(ValueId written, ValueId value);
  // An answer took inputs to lie apart from what is written.
  bool relies_on_inputs() const { return relies_on_inputs_; }

 private:
  static constexpr ValueId kUnknown = kNoValueId;  // of branches and loops

  const Graph& graph_;
  std::vector<ValueId> roots_;  // by value: the input or leaf whose memory it is
  bool relies_on_inputs_ = false;
};

// Throws Error if an input lies in memory that the program writes by another name.
void check_inputs_disjoint(const Graph& graph, tenon_tensor* const* inputs);
// Throws Error if leaves of `changed` overlap that did not in `graph`, and one of them is written.
void check_leaves_disjoint(const Graph& graph, const Graph& changed);

}  // namespace tenon::graph
