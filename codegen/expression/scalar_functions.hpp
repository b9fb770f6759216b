// SPDX-License-Identifier: Apache-2.0
// Functions of scalar expressions. Devices provide one implementation of each (tenon::cpu::math).
#pragma once

#include <string>
#include <vector>

namespace tenon::codegen {

struct ScalarFunction {
  enum Domain {
    Floating,         // float only
    FloatingComplex,  // float and complex
    WholeNumber,      // integers only
    RealNumber,       // integers and float
    Any
  };
  enum Answer { SameType, RealType, Truth };
  const char* name;
  int arity;
  Domain domain;
  Answer answer = SameType;
  bool on_host = false;  // of attributes alone it is a double, computed by the function of <cmath>
};
const std::vector<ScalarFunction>& scalar_functions();
const ScalarFunction* find_scalar_function(const std::string& name);

}  // namespace tenon::codegen
