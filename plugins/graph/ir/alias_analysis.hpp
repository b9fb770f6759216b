// SPDX-License-Identifier: Apache-2.0
// Which values share memory, and what happens to that memory.
#pragma once

#include "ir/graph.hpp"

namespace tenon::graph {

// Values that may share memory have one group. Inputs and leaves from outside are one group together:
// callers may give tensors that overlap.
class AliasAnalysis {
 public:
  explicit AliasAnalysis(const Graph& graph) : AliasAnalysis(graph, true) {}
  // Of a graph whose inputs and leaves are known to be apart, as while it is recorded: one that shares memory with another
  // one is a view of it.
  static AliasAnalysis of_recording(const Graph& graph) { return AliasAnalysis(graph, false); }

  ValueId alias_set(ValueId value) const { return parents_[value]; }
  bool is_written(ValueId value) const { return written_[alias_set(value)]; }
  // Seen by others when the program has ended, or before: a result, an input, a leaf from outside.
  bool is_outside(ValueId value) const { return outside_[alias_set(value)]; }

 private:
  AliasAnalysis(const Graph& graph, bool inputs_overlap);
  void join_regions(const Step& step);
  ValueId root(ValueId value);
  void join(ValueId a, ValueId b);

  std::vector<ValueId> parents_;  // of each value: after construction, its group
  std::vector<bool> written_, outside_;
};

// By value: is it a constant with a tensor, into which no step writes?
std::vector<bool> unwritten_constants(const Graph& graph, const AliasAnalysis& aliases);

// Does a step of a region write into memory of its inputs? Other than by groups: a value that a branch takes from either of
// two shares memory with both, and they not with each other.
bool writes_into_inputs(const Graph& graph);

// Does a step write into memory of an input or of a leaf from outside? Those of regions never do: they write into clones.
bool writes_outside(const Graph& graph);

// May the results of the step share memory with its arguments?
bool makes_aliases(const Step& step);

}  // namespace tenon::graph
