// SPDX-License-Identifier: Apache-2.0
// An operator that is defined in Python: a plugin table of one operator, made at run time, whose
// `self` is the definition. tenon/ops/_definition.py decides what goes in.
//
// Definitions are never freed, so that a call which is under way on another thread while one is
// taken out meets an error and no dangling pointer; what they hold of Python is given back.
#pragma once

#include <tenon/services/autograd.h>

#include <string>

#include "expected_result.hpp"
#include "python_callback.hpp"

namespace tenon::python {

// Parsed once for each text and kept: callables and graphs point into it. Throws SchemaError.
const Schema& schema_of(const std::string& text);

// One plugin table that comes and goes. Unlocks the GIL around the host, whose loader may wait for
// a thread that waits for the GIL. Return false with the Python error set.
bool attach_table(tenon_plugin& table, const std::string& origin);
bool detach_table(const std::string& plugin_name);
// Filled in for a table of this name; `stop` is there, so that it can be unloaded.
tenon_plugin empty_table(const std::string& plugin_name);
// "python_swiglu_3": what the host calls the next table.
std::string next_plugin_name(std::string_view operator_name);

// Counts a call of a Python function for as long as it runs: what is being called is not taken out.
class Running {
 public:
  explicit Running(int& count) : count_(count) { ++count_; }
  ~Running() { --count_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  int& count_;
};

// How an operator differentiates. Recorded calls point at it whatever becomes of the operator:
// never freed either.
struct GradientDefinition {
  const Schema& schema;
  Callback function;  // empty: asking for the gradient is an error that says what to add
  tenon_grad_rule rule = {};
};

struct OperatorDefinition {
  explicit OperatorDefinition(const Schema& parsed) : schema(parsed) {}

  const Schema& schema;
  std::string plugin_name, doc, origin, traits;
  tenon_plugin table = {};
  tenon_op_def def = {};
  std::vector<tenon_param_def> params;  // the schema's, with the flags of an elementwise operator
  Callback body, shape;
  bool is_elementwise = false;
  bool is_differentiable = true;
  uint32_t amp_flags = 0;  // TENON_OP_AMP_*
  GradientDefinition* gradient = nullptr;
  const tenon_op* op = nullptr;  // while attached
  int running = 0;
  bool is_attached = false;

  // In terms of other operators at every level: gradients come from its parts.
  bool is_composite() const {
    return body && !shape && !(is_elementwise && gradient && gradient->function);
  }
};

// What the host calls.
tenon_status infer_in_python(const tenon_value* args, uint32_t nargs, tenon_meta* outs,
                             uint32_t nouts, tenon_err* err, void* self);
tenon_status decompose_in_python(const tenon_value* args, uint32_t nargs, tenon_value* outs,
                                 uint32_t nouts, tenon_err* err, void* self);

// Takes the results that the shape rule computed when the host last called it on this thread, if
// that call was for this operator.
bool take_promise(const OperatorDefinition& definition, ExpectedResult* results, uint32_t count);

// Register how the attached operator differentiates, in place of what was registered before. False:
// Python error set.
bool register_gradient(OperatorDefinition& definition);

// Publish the definition, or take it out again. False: Python error set.
bool attach(OperatorDefinition& definition);
bool detach(OperatorDefinition& definition);

}  // namespace tenon::python
