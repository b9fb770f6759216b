// SPDX-License-Identifier: Apache-2.0
// Steps of a program in the form in which a device's compiler reads them (abi.h, tenon_subgraph).
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"

namespace tenon::graph {

// A description of neighbouring steps, valid as long as the object lives.
class Subgraph {
 public:
  // `results`: what is read behind `end`. `constants`: by value, the tensors that never change.
  Subgraph(const Graph& graph, uint32_t begin, uint32_t end, const std::vector<ValueId>& results,
           const std::unordered_map<ValueId, tenon_tensor*>& constants);
  Subgraph(const Subgraph&) = delete;

  const tenon_subgraph* get() const { return &table_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }

 private:
  tenon_tensor* placeholder(ValueId value);
  void use(ValueId value);
  tenon_value argument(const Operand& operand, const tenon_param_def& parameter,
                       tenon_device_id device);

  const Graph& graph_;
  std::unordered_map<ValueId, Tensor> placeholders_;  // on the device "meta"
  std::vector<ValueId> inputs_;
  std::deque<std::vector<tenon_value>> arguments_;
  std::deque<std::vector<tenon_tensor*>> lists_;
  struct Number {
    Tensor memory;
    tenon_tensor scalar;
  };
  std::deque<Number> numbers_;
  std::vector<tenon_subgraph_step> steps_;
  std::vector<tenon_tensor*> input_tensors_, output_tensors_, constants_;
  std::string name_;
  tenon_subgraph table_ = {};
};

// Values that the steps read and do not make, in the order in which they are read.
std::vector<ValueId> read_from_outside(const Graph& graph, uint32_t begin, uint32_t end);

}  // namespace tenon::graph
