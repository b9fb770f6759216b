// SPDX-License-Identifier: Apache-2.0
// Which rule differentiates an operator: a flat table by dense operator id, read without a lock.
#pragma once

#include "support.hpp"

namespace tenon::autograd {

// An operator as the layer sees it. Lives as long as the process: nodes point at it.
struct OperatorInfo {
  const tenon_op* op;
  const char* name;
  const tenon_grad_rule* rule;  // NULL: none
  uint64_t diff_args;  // the rule's masks. Without a rule all arguments count: what depends on
                       // them must not look like a constant, except for NO_GRAD operators
  uint64_t saves_args;
  uint64_t shapes_args;
  uint64_t saves_outs;
  uint32_t op_flags;  // TENON_OP_*
  uint32_t nparams;
  bool has_tensors;    // some parameter is a tensor or a list of them
  bool keeps_values;   // backward reads some argument: saved, shape only, or an attribute
  bool is_plain_view;  // a VIEW without a gradient rule of its own

  // What the gradients of the arguments in `needs` read, out of what the rule saves at most.
  uint64_t arguments_read(uint64_t needs) const {
    return needs == diff_args || !saves_args ? saves_args : some_arguments_read(needs);
  }
  uint64_t outputs_read(uint64_t needs) const {
    return needs == diff_args || !saves_outs ? saves_outs : some_outputs_read(needs);
  }

 private:
  uint64_t some_arguments_read(uint64_t needs) const;
  uint64_t some_outputs_read(uint64_t needs) const;
};

// Generated from the `grad` entries of opdefs.
extern const tenon_grad_rule kGradRules[];
extern const uint32_t kGradRuleCount;

// What is known about `op`; NULL if host memory ran out.
const OperatorInfo* operator_info(const tenon_op* op);

// The first rule for an operator wins, unless a later one replaces it. The operator may be defined
// later.
tenon_status rule_register(const tenon_grad_rule* rule, tenon_err* err);

tenon_status run_rule(const tenon_grad_rule& rule, const tenon_value* args, uint32_t nargs,
                      tenon_tensor* const* outs, tenon_tensor* const* grad_outs, uint32_t nouts,
                      uint64_t needs, tenon_value* grad_args, tenon_err* err);

}  // namespace tenon::autograd
