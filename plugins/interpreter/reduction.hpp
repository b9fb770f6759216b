// SPDX-License-Identifier: Apache-2.0
// Operators with `reduce`, run as calls of the operators that reduce: map, then sum, prod, max,
// min, any or all, then finish.
#pragma once

#include <model/operator.hpp>

#include "scalar_run.hpp"

namespace tenon::interpreter {

struct Reduction {
  std::string name;
  int axis = -1, keepdim = -1;  // parameters; -1: none
  bool keeps = false;           // without a parameter
  int32_t compute = 0;
  lowering::Out out = lowering::Out::Same;
  bool truth = false;      // partial results are bools
  bool plain_sum = false;  // of the elements as they are
  std::shared_ptr<Callee> combine;
  std::optional<ScalarCodes> init;
  ScalarCodes map, finish;
};
// Throws codegen::Error where an expression cannot be interpreted.
Reduction reduction_of(const codegen::Operator& op);

tenon_status run(const Reduction& op, const tenon_value* args, tenon_value* outs, tenon_err* err);

}  // namespace tenon::interpreter
