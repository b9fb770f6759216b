// SPDX-License-Identifier: Apache-2.0
// Scalar expressions (`expr`, `reduce`) after checking: the value of one element, computed from the
// elements of the inputs and from attributes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/operator.hpp"

namespace tenon::codegen {

struct ScalarType {
  enum Kind {
    Element,  // the compute type: float for half types, otherwise the dtype's own
    Real,     // its real part's type; differs from Element for complex dtypes only
    Bool,
    Int,     // host integer
    Float,   // host double
    String,  // attributes compared with 'text'
  };
  Kind kind = Element;
  bool varying = false;  // differs from element to element
};

struct ScalarValue {
  enum Form {
    Literal,      // text
    Limit,        // text is lowest, highest, inf or nan
    Variable,     // text; attribute if `attribute` >= 0
    Unary,        // text is the sign
    Binary,       // text is the sign
    Conditional,  // condition does not vary: C++ ?:
    Select,       // condition varies: both sides are computed
    Function,     // text
    IsNone,       // attribute, text is == or !=
  };
  Form form = Literal;
  ScalarType type;
  std::string text;
  int attribute = -1;  // index among the non-tensor parameters
  std::vector<ScalarValue> children;
};

// Lines `name = ...` that differ from element to element, in their order. What depends on attributes
// alone is written into the lines that use it.
using ScalarSteps = std::vector<std::pair<std::string, ScalarValue>>;

// The elementwise expression of one dtype class, and the parts of it that have names.
struct ScalarLines {
  ScalarSteps parts;
  ScalarValue result;
};
ScalarLines check_case(const Operator& op, const ScalarCase& scalar_case);

// A value whose children are all lines: for what is asked of each of them.
ScalarValue all_lines(const ScalarLines& lines);

// The lines of an `expr` of several results.
ScalarSteps check_element_steps(const Operator& op);

// The four parts of a reduction.
struct CheckedReduction {
  std::optional<ScalarValue> init;
  ScalarValue map, combine, finish;
  bool truth = false;  // partial results are bools
};
CheckedReduction check_reduction(const Operator& op);

// The non-tensor parameters in schema order: what generated loops receive as attributes.
std::vector<int> attribute_params(const Signature& signature);

}  // namespace tenon::codegen
