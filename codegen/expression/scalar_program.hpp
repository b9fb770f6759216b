// SPDX-License-Identifier: Apache-2.0
// A checked scalar expression as steps on whole tensors: one operator call for each part that
// differs from element to element. Equal parts are one step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "expression/scalar.hpp"

namespace tenon::codegen {

struct ScalarStep {
  enum Form {
    Input,      // tensor parameter a
    Attribute,  // parameter a, a number or text
    IsNone,     // is parameter a none?
    Float,      // number
    Int,        // integer
    Bool,       // integer
    Text,       // text
    Lowest,     // of the dtype
    Highest,    // of the dtype
    Partial,    // result of the reduction
    Count,      // elements reduced to one
    Call,       // operator `text` of a, or of a and b
    Select,     // a ? b : c
  };
  Form form = Input;
  int operands = 0;  // of a, b, c: how many are numbers of earlier steps
  int a = 0, b = 0, c = 0;
  std::string text;  // Call, Text; of numbers: as written
  double number = 0;
  int64_t integer = 0;
};
using ScalarProgram = std::vector<ScalarStep>;  // the last step is the result

enum class Vocabulary {
  Operators,   // an operator for every function
  Primitives,  // only operators that are primitives; functions made of several are taken apart
};

// Nothing: some part of it has no primitive, or it has more than `kMaxSteps` parts.
constexpr size_t kMaxSteps = 1000;
std::optional<ScalarProgram> scalar_program(const Operator& op, const ScalarLines& lines,
                                            Vocabulary vocabulary);
std::optional<ScalarProgram> scalar_program(const Operator& op, const ScalarValue& value,
                                            Vocabulary vocabulary);

// The operator that reduces with this `combine` ("sum", "prod", "max", "min", and of bools "any",
// "all"); nothing if no operator does.
std::optional<std::string> reducing_operator(const CheckedReduction& reduction);

}  // namespace tenon::codegen
