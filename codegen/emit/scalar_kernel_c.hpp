// SPDX-License-Identifier: Apache-2.0
// Checked scalar expressions as Kernel C (docs/kernel_c.md). Elements are called e_<name> and have
// type T; k_<function>() is on T. What depends on attributes alone is computed on the host, in C++,
// and reaches the kernel as v0, v1, ...
#pragma once

#include <string>
#include <vector>

#include "expression/scalar.hpp"

namespace tenon::codegen {

struct KernelCText {
  std::string parts;  // statements before the expression
  std::string expression;
  // What the host computes: a C++ expression that reads attributes by name, or a Scalar attribute
  // handed on as it came.
  struct HostValue {
    std::string cpp;
    std::string type;  // of the kernel's parameter: "T", "tk_i64" or "tk_i32"
  };
  std::vector<HostValue> values;
  std::string declarations;  // C++ that declares the attributes that `values` read
};

// `integers`: elements may be integers, which C would widen to int.
KernelCText scalar_kernel_c(const Signature& signature, const ScalarValue& value, bool integers);

// The same of several lines: `parts` declares e_<name> of each part.
KernelCText scalar_kernel_c(const Signature& signature, const ScalarLines& lines, bool integers);

// Lines of several results, as statements: `T e_<name> = ...;`, and `r0 = e_<name>;` for results.
KernelCText scalar_kernel_c(const Signature& signature, const ScalarSteps& steps);

}  // namespace tenon::codegen
