// SPDX-License-Identifier: Apache-2.0
// An operator expression after checking: every name resolved, every call bound to a signature,
// infix on tensors turned into operator calls. What emitters translate.
#pragma once

#include <string>
#include <vector>

#include "model/operator.hpp"

namespace tenon::codegen {

struct ValueType {
  enum Base {
    None,
    Tensor,
    Tensors,
    Int,
    Float,
    Bool,
    Scalar,
    String,
    Dtype,
    Device,
    Ints,
    Floats,
    Record,  // the results of an operator that has several
  };
  Base base = None;
  bool optional = false;
  const Operator* record = nullptr;

  bool is(Base other) const { return base == other && !optional; }
  bool is_number() const { return !optional && (base == Int || base == Float || base == Scalar); }
};
ValueType type_of(const Param& param);
std::string name_of(const ValueType& type);  // "int[]?"

// What a name stands for.
enum class Role {
  Argument,  // parameter `index`
  Output,    // result `index` of the operator (grad only)
  Gradient,  // gradient of result `index` (grad only)
  Step,      // an earlier line
};

struct Value {
  enum Form {
    Constant,      // literal, dtype name or none; `node` has it
    Variable,      // text, role, index
    Arithmetic,    // host values; text is the sign, one or two children
    HostCall,      // text is the function
    OperatorCall,  // op, bound
    Conditional,   // three children
    List,          // of host numbers or of tensors, see type
    Meta,          // text is shape, ndim, numel, dtype or device of child 0
    Element,       // child 0 [child 1]
    ResultOf,      // result `index` of child 0, which is a Record
    IsNone,        // child 0 == none
  };
  Form form = Constant;
  ValueType type;
  std::string text;
  Role role = Role::Argument;
  int index = 0;
  const Operator* op = nullptr;
  std::vector<int> bound;  // per parameter of `op`: child index, or -1 for the default
  std::vector<Value> children;
  Node node;  // Constant: the literal
  // Variable: its declared type is optional, but a test around it says that it is there.
  bool narrowed = false;
};

struct Program {
  std::vector<std::pair<std::string, Value>> steps;
  Value result;
};

template <class ValueRef, class Visitor>
void walk_values(ValueRef& value, Visitor&& visit) {
  visit(value);
  for (auto& child : value.children) walk_values(child, visit);
}

}  // namespace tenon::codegen
