// SPDX-License-Identifier: Apache-2.0
// A checked operator expression, prepared for evaluation: names are numbers, calls know their
// operators.
#pragma once

#include <expression/value.hpp>
#include <memory>
#include <string>
#include <vector>

#include "callee.hpp"
#include "item.hpp"

namespace tenon::interpreter {

enum class Sign : uint8_t {
  kNone,
  kNegative,
  kNot,
  kInvert,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kRemainder,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kAnd,
  kOr,
  kBitAnd,
  kBitOr,
  kBitXor,
  kShiftLeft,
  kShiftRight
};
Sign sign_of(const std::string& text, bool unary);

// A function on host values; its arguments are evaluated.
using HostFunction = Item (*)(Scope&, const std::vector<Item>&);
// NULL: no such function.
HostFunction host_function(const std::string& name, bool integers);

// How a call of few operators is made where all its operands are numbers.
enum class Fold : uint8_t { kNone, kNegative, kAdd, kSubtract, kMultiply, kDivide };

struct Code {
  codegen::Value::Form form = codegen::Value::Constant;
  codegen::ValueType::Base type = codegen::ValueType::None;
  codegen::Role role = codegen::Role::Argument;
  int index = 0;  // Variable, ResultOf
  enum class Fact : uint8_t { kShape, kNdim, kNumel, kDtype, kDevice } fact = Fact::kShape;  // Meta
  Sign sign = Sign::kNone;                       // Arithmetic; IsNone: kEqual or kNotEqual
  Fold fold = Fold::kNone;                       // OperatorCall
  uint32_t results = 1;                          // OperatorCall
  tenon_value constant = kNoValue;               // Constant; text lies in `text`
  std::shared_ptr<const std::string> text;       // of a constant
  HostFunction function = nullptr;               // HostCall
  std::shared_ptr<Callee> callee;                // OperatorCall
  std::vector<int> bound;                        // OperatorCall: child of each parameter, or -1
  std::vector<codegen::ValueType::Base> params;  // OperatorCall: their types
  std::vector<Code> children;
};

struct Program {
  std::vector<Code> steps;
  Code result;
};
Program compile(const codegen::Program& program);

}  // namespace tenon::interpreter
