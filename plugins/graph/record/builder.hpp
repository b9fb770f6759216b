// SPDX-License-Identifier: Apache-2.0
// A program that is put together call by call, while nothing runs. A value is a tensor of the
// device "meta", told apart by its address; what a call makes of values is what the operator's own
// rule says of such tensors.
#pragma once

#include <tenon/services/graph.h>

#include <unordered_map>
#include <vector>

#include "program/program.hpp"

namespace tenon::graph {

class Builder {
 public:
  explicit Builder(tenon_device_id device) : device_(device) {}

  // Values: owned by the caller, and alive here until the builder ends.
  Tensor add_input(Type type);
  // The same tensor again is the same value.
  Tensor add_leaf(tenon_tensor* tensor, const char* name, bool is_constant);

  // As op_call, of values. Composites that no kernel of the device serves as a whole become their
  // parts.
  tenon_status call(const tenon_op* op, const tenon_value* args, uint32_t nargs, tenon_value* outs,
                    uint32_t nouts, tenon_err* err);
  // What the layer sees meanwhile: one call with complete arguments, which `below` continues.
  using Below = tenon_status (*)(const tenon_op*, tenon_value* args, uint32_t nargs,
                                 tenon_value* outs, uint32_t nouts, tenon_err*);
  tenon_status record(const tenon_op* op, const tenon_value* args, uint32_t nargs,
                      tenon_value* outs, uint32_t nouts, Below below, tenon_err* err);

  // A branch or loop (builder_control.cpp). Results are values; throws Error.
  std::vector<Tensor> add_control(StepKind kind, tenon_tensor* const* operands, uint32_t noperands,
                                  uint32_t carried, uint32_t scanned,
                                  tenon_graph_program* const* regions, uint32_t nregions,
                                  uint32_t nresults);

  // The gradient of the sum of `result` by each of `sources`, as steps (builder_gradients.cpp). Results
  // are values; zeros where the result does not depend on the source. Throws Error.
  std::vector<Tensor> gradients(const tenon_tensor* result, tenon_tensor* const* sources,
                                uint32_t nsources);

  // The program's own data that the value stands for; NULL: it is none.
  tenon_tensor* constant(const tenon_tensor* value) const;
  // The device on which a run has the value.
  tenon_device_id device(const tenon_tensor* value) const;
  // Where the steps that follow are in the caller's program.
  void locate(const char* file, int32_t line);
  ProgramPtr finish(tenon_tensor* const* results, uint32_t nresults);

 private:
  ValueId value_of(const tenon_tensor* value, const char* what) const;
  // The value itself, or that of a leaf for a tensor with data.
  tenon_tensor* stand_in(tenon_tensor* tensor, bool is_constant);
  void bind(tenon_tensor* meta, ValueId value);
  Tensor add(Type type);
  // Types of the results of a branch or loop.
  std::vector<Type> check_regions(const Step& step) const;
  void hoist_leaves(Step& step);
  bool is_served_whole(const tenon_op* op, const tenon_value* args, uint32_t nargs) const;

  tenon_device_id device_;  // of what has no operand that says another one
  Graph graph_;
  std::vector<Tensor> values_;  // their tensors, so that no address is used twice
  std::unordered_map<const tenon_tensor*, ValueId> by_tensor_;
  std::unordered_map<const tenon_tensor*, tenon_tensor*> leaves_;  // value of each leaf's tensor
  Location location_;
  bool is_recorded_ = true;  // gradients were on when the call under way began
};

}  // namespace tenon::graph

// The handle of the service is the builder itself.
struct tenon_graph_builder : tenon::graph::Builder {
  using Builder::Builder;
};
