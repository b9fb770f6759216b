// SPDX-License-Identifier: Apache-2.0
// Graphs in nodes as regions of cond, while and scan steps: what they compute depends on the inputs.
#pragma once

#include <memory>

#include "importer.hpp"

namespace tenon::onnx {

// Names that the graphs of a node read and do not make.
std::vector<std::string> free_names(const Node& node);

// Values around some graphs that these read: operands of the step, and inputs of each region.
class Captures {
 public:
  Captures(const std::vector<const Graph*>& graphs, const Scope& scope);

  // One more, of no name; known tensors are none.
  void add(const Value& value);
  const std::vector<Tensor>& operands() const { return operands_; }
  const std::vector<std::pair<std::string, Value>>& names() const { return names_; }
  // `value` with the operands in it replaced by `inputs`.
  Value replaced(const Value& value, const std::vector<Tensor>& inputs) const;

 private:
  std::vector<Tensor> operands_;
  std::vector<std::pair<std::string, Value>> names_;
};

// While it lives, steps of the importer go into a program of their own.
class Region {
 public:
  explicit Region(Conversion& c);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // The next input, of the type of `like`; or of a part of it along its first axis.
  Tensor input(const Tensor& like);
  Tensor element_input(const Tensor& like);
  // Inputs for the operands of `captures`, which come last.
  void capture(const Captures& captures);
  // A captured value as the region has it.
  Value inside(const Value& value) const;
  Values run(const Graph& graph, const Values& inputs);
  OwnedProgram finish(const Values& results);

 private:
  Conversion& c_;
  Steps steps_;
  Steps* outer_;
  Scope scope_;
  const Captures* captures_ = nullptr;
  std::vector<Tensor> inputs_;  // of the captures
};

// Bool tensors without axes, as steps take them.
Value known_truth(bool truth);
Value truth_of(Conversion& c, const Value& value, const std::string& name);
// "float32 [2, 3], int64 []", of tensors.
std::string types_text(const Values& values);
bool have_same_types(const Values& a, const Values& b);

}  // namespace tenon::onnx
