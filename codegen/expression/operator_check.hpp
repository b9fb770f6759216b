// SPDX-License-Identifier: Apache-2.0
// Type checker of operator expressions (`decompose`, `grad`) against the signatures of all loaded
// operators. Throws Error at the first mistake.
#pragma once

#include <string>

#include "expression/value.hpp"

namespace tenon::codegen {

// `decompose`: the result gives every result of `op` (a list if there are several).
Program check_decompose(const Operator& op, const Package& package);

// One `grad` entry: the result gives every parameter that it names.
Program check_gradient(const Operator& op, const Gradient& gradient, const Package& package);

// An example's call. Lists stand for tensors where a Tensor is expected.
void check_example(const Operator& op, const Example& example, const Package& package);

}  // namespace tenon::codegen
