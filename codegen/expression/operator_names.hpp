// SPDX-License-Identifier: Apache-2.0
// The operators that signs and scalar functions stand for.
#pragma once

#include <string>

namespace tenon::codegen {

// "+" is add, unary "-" is negative. The sign must be one of the grammar's.
const char* operator_of_sign(const std::string& sign, bool unary);

// "floordiv" is floor_divide; most functions are called as their operators.
std::string operator_of_function(const std::string& function);

// The primitive that an operator is, as an opcode (tenon/primitives.h).
struct Primitive {
  enum Family { None, Unary, Binary, Compare, Reduction };
  Family family = None;
  int opcode = 0;
  const char* macro = "";  // "TENON_UNARY_EXP"
};
Primitive primitive_of(const std::string& op, Primitive::Family among);

}  // namespace tenon::codegen
