// SPDX-License-Identifier: Apache-2.0
// What a call of PyTorch is in operators of Tenon, written down once by Python and run again without it.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>
#include <optional>
#include <vector>

#include "runtime.hpp"

namespace tenon_torch {

// An argument of an operator.
struct Operand {
  enum Kind : uint8_t {
    kConstant,  // `value`, whose memory `kept` holds
    kArgument,  // argument `index` of PyTorch's call, a tensor or a number; with `element` 0 or more that one of a list
    kStep,      // result `element` of step `index`
    kList,      // the tensors of `list`
    kTensor,    // `tensor`
  };
  Kind kind = kConstant;
  uint32_t index = 0;
  int32_t element = -1;
  tenon_value value{};
  std::shared_ptr<const void> kept;
  std::vector<Operand> list;
  at::Tensor tensor;
};

struct Step {
  const tenon_op* op = nullptr;
  std::vector<Operand> arguments;
};

struct Tape {
  struct Write {
    Operand from;
    uint32_t argument;  // of PyTorch's call, the tensor that is written
  };
  std::vector<Step> steps;
  std::vector<Operand>
      results;  // empty: the tensors that are written; constants: numbers, or nothing
  std::vector<Write> writes;
  bool is_list = false;     // the only result is a list of tensors
  bool may_resize = false;  // what is written gets the result's shape (the form `out=`)
};

// What tapes of an operator depend on beside dtypes, numbers of axes and what is no tensor.
struct Dependence {
  bool on_shapes = false;
  bool on_numbers = false;  // that are given as tensors
  uint64_t free =
      0;  // a bit for each argument that is a number which tapes read: on its value they do not
  bool operator==(const Dependence&) const = default;
};

// What Python says of a call: its results, which it has computed, and how to get them next time.
struct Answer {
  std::vector<c10::IValue> results;
  std::shared_ptr<const Tape> tape;  // null: ask again
  Dependence dependence;
};

Answer ask(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);

Handles run_step(const Step& step, c10::ArrayRef<c10::IValue> arguments, const Steps& steps,
                 tenon_tensor* into);

}  // namespace tenon_torch
