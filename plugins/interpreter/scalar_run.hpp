// SPDX-License-Identifier: Apache-2.0
// Scalar expressions on whole tensors: one operator call for each part that differs from element to
// element. Numbers stay numbers for as long as they meet no tensor.
#pragma once

#include <expression/scalar_program.hpp>
#include <memory>
#include <optional>
#include <tenon/ops/lowering.hpp>
#include <vector>

#include "callee.hpp"

namespace tenon::interpreter {

struct ScalarCode {
  codegen::ScalarStep step;
  lowering::Step on_numbers{lowering::Do::Input};  // a Call of numbers alone; Input: by operator
  std::shared_ptr<Callee> callee;                  // Call
  uint32_t readers = 0;                            // steps that have this one as an operand
};
using ScalarCodes = std::vector<ScalarCode>;
ScalarCodes compile(const codegen::ScalarProgram& program);

class ScalarRun {
 public:
  // `around` as for lowerings; both must outlive the run.
  ScalarRun(const ScalarCodes& codes, const lowering::Surroundings& around);

  lowering::Value result() { return value(codes_.size() - 1); }
  // Into `out`, which has the shape that the elements have together.
  tenon_status result_into(tenon_tensor* out);

 private:
  lowering::Value value(size_t index);
  lowering::Value compute(const ScalarCode& code, tenon_tensor* out);
  lowering::Value input(uint32_t index);
  lowering::Value call(const ScalarCode& code, tenon_tensor* out);
  lowering::Value select(const ScalarCode& code, tenon_tensor* out);
  lowering::Value as_tensor(const lowering::Value& x);
  lowering::Value run(Callee& callee, tenon_value* args, uint32_t nargs, tenon_tensor* out);
  bool fits(const tenon_tensor* out, const lowering::Value& a, const lowering::Value& b) const;

  const ScalarCodes& codes_;
  const lowering::Surroundings& around_;
  struct Slot {
    std::optional<lowering::Value> value;
    uint32_t readers = 0;
  };
  std::vector<Slot> slots_;
  bool is_written_ = false;
};

// Calls of operators that scalar programs need beside those they name.
Tensor converted(Scope& scope, const Tensor& x, int32_t dtype);
Tensor filled(Scope& scope, const std::vector<int64_t>& shape, const tenon_value& number,
              int32_t dtype, tenon_device_id device);
// A value as a result: of this shape and dtype, with memory of its own.
tenon_status give_result(Scope& scope, lowering::Value value, const std::vector<int64_t>& shape,
                         int32_t dtype, tenon_device_id device, tenon_value* out);

}  // namespace tenon::interpreter
