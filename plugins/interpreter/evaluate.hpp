// SPDX-License-Identifier: Apache-2.0
// Operator expressions, run by calling the host's operators.
#pragma once

#include "code.hpp"

namespace tenon::interpreter {

// What names in an expression stand for.
struct Surroundings {
  const tenon_value* args = nullptr;
  // Gradients only.
  tenon_tensor* const* outs = nullptr;
  tenon_tensor* const* grad_outs = nullptr;
  uint32_t nouts = 0;
};

class Evaluation {
 public:
  Evaluation(Scope& scope, const Surroundings& around) : scope_(scope), around_(around) {}

  // All steps but the result.
  void run_steps(const Program& program);
  // What it borrows is valid while the evaluation and the arguments are.
  Item evaluate(const Code& code);
  // A tensor where a number will not do.
  Tensor tensor(const Item& item);
  std::vector<Tensor> tensors(const Item& item);

 private:
  Item variable(const Code& code);
  Item arithmetic(const Code& code);
  Item operator_call(const Code& code);
  Item list(const Code& code);
  Item fact(const Code& code);
  Item element(const Code& code);
  Item is_none(const Code& code);

  Scope& scope_;
  const Surroundings& around_;
  std::vector<Item> steps_;
};

// Arithmetic on host values.
Item apply(Scope& scope, Sign sign, codegen::ValueType::Base type, const Item& a);
Item apply(Scope& scope, Sign sign, codegen::ValueType::Base type, const Item& a, const Item& b);

}  // namespace tenon::interpreter
