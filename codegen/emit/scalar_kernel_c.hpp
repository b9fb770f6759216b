// SPDX-License-Identifier: Apache-2.0
// Checked scalar expressions as Kernel C (docs/kernel_c.md). Elements are called e_<name> and have
// type T; k_<function>() is on T. What depends on attributes alone is computed on the host, in C++,
// and reaches the kernel as v0, v1, ... Complex elements, which have no operators in C, are added by
// k_add(x, y) and so on; their parts have type R and functions r_<function>().
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
    std::string type;  // of the kernel's parameter: "T", "R", "tk_i64" or "tk_i32"
  };
  std::vector<HostValue> values;
  std::string declarations;  // C++ that declares the attributes that `values` read
};

// What the elements of a program are.
enum class KernelElements {
  Floating,
  Integers,  // too: C would widen them to int
  Complex,
};

KernelCText scalar_kernel_c(const Signature& signature, const ScalarValue& value,
                            KernelElements elements);

// The same of several lines: `parts` declares e_<name> of each part.
KernelCText scalar_kernel_c(const Signature& signature, const ScalarLines& lines,
                            KernelElements elements);

// Lines of several results, as statements: `T e_<name> = ...;`, and `r0 = e_<name>;` for results.
KernelCText scalar_kernel_c(const Signature& signature, const ScalarSteps& steps);

}  // namespace tenon::codegen
