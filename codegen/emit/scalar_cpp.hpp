// SPDX-License-Identifier: Apache-2.0
// Checked scalar expressions as C++: math::f() on elements, plain arithmetic elsewhere.
#pragma once

#include <string>

#include "expression/scalar.hpp"

namespace tenon::codegen {

// What the C++ around the expression calls its types.
struct ScalarNames {
  std::string element;     // "T"
  std::string real;        // "R", the type of real parts
  bool integers = false;   // elements may be integers, which C++ would widen to int
  std::string attributes;  // the array of attributes
};

// An expression of the type that the value has; `as_element` converts numbers to the element type.
std::string scalar_cpp(const ScalarValue& value, const ScalarNames& names);
std::string scalar_cpp_as_element(const ScalarValue& value, const ScalarNames& names);

// `const double slope = attribute_float(attributes[0]);` for every attribute that is read.
std::string declare_attributes(const Signature& signature, const ScalarValue& value,
                               const ScalarNames& names, const std::string& indent);

// Is this name read?
bool scalar_reads(const ScalarValue& value, const std::string& name);

// Work for one element, in additions.
int scalar_cost(const ScalarValue& value);

}  // namespace tenon::codegen
