// SPDX-License-Identifier: Apache-2.0
// One operator of a file as the host wants it: tables made at run time, and what their functions
// do.
#pragma once

#include <tenon/services/autograd.h>
#include <expression/usage.hpp>
#include <memory>
#include <optional>

#include "code.hpp"
#include "elementwise.hpp"
#include "reduction.hpp"

namespace tenon::interpreter {

// One `grad` entry.
struct GradientCode {
  std::vector<int> params;  // parameters that it gives
  uint64_t mask = 0;        // of them
  bool is_list = false;     // the one parameter is a Tensor[]
  std::vector<int> reads;   // results whose gradients it reads
  Program program;
};

// Lives as long as the process: recorded calls and running ones may point at it.
struct Definition {
  // Throws codegen::Error for what has no meaning without a compiler.
  Definition(std::unique_ptr<codegen::Operator> definition, const codegen::Package& package);
  Definition(const Definition&) = delete;

  const tenon_op_def& table() const { return table_; }
  // For the host device, whose kind is `device`; false: its kernels are those of its parts.
  bool has_kernel() const { return elementwise.has_value(); }
  tenon_kernel_def kernel(const char* device) const;
  // Of operators with `grad`; others take away what was registered before.
  const tenon_grad_rule& rule() const { return rule_; }

  const std::unique_ptr<codegen::Operator> op;
  std::optional<Program> decompose;
  std::optional<Elementwise> elementwise;
  std::optional<Reduction> reduction;
  std::vector<GradientCode> gradients;

 private:
  void fill_table();
  void fill_rule(const codegen::GradientRule& rule);

  std::string name_, schema_, origin_, traits_;
  std::vector<tenon_param_def> params_;
  std::vector<const char*> out_names_;
  std::vector<uint64_t> arg_reads_, out_reads_;
  tenon_op_def table_ = {};
  tenon_grad_rule rule_ = {};
};

// What the tables point at; `self` is a Definition.
tenon_status infer(const tenon_value* args, uint32_t nargs, tenon_meta* outs, uint32_t nouts,
                   tenon_err* err, void* self);
tenon_status decompose(const tenon_value* args, uint32_t nargs, tenon_value* outs, uint32_t nouts,
                       tenon_err* err, void* self);
tenon_status backward(const tenon_host*, const tenon_value* args, uint32_t nargs,
                      tenon_tensor* const* outs, tenon_tensor* const* grad_outs, uint32_t nouts,
                      uint64_t needs, tenon_value* grad_args, tenon_err* err, void* self);

}  // namespace tenon::interpreter
